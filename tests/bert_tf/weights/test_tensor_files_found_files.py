"""Folders without readable weights: the message names their files and the next step."""

import pytest

from bert_tf.weights.tensor_files import describe_folder


def fill(folder, *names):
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return describe_folder(folder)


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["adapter_config.json", "adapter_model.safetensors"], "a LoRA adapter .*merge_and_unload"),
        (["config.json", "flax_model.msgpack"], "holds flax_model.msgpack, .*from_flax=True"),
        (["epoch=3-step=9.ckpt"], "holds epoch=3-step=9.ckpt, a checkpoint of PyTorch Lightning"),
        (["model.pt"], "holds model.pt, a checkpoint of PyTorch; .*save_pretrained"),
        (["uncased_L-2_H-128_A-2.zip"], "holds the archive uncased_L-2_H-128_A-2.zip; unpack it"),
        (
            ["pytorch_model-00001-of-00002.bin", "pytorch_model-00002-of-00002.bin"],
            "holds pytorch_model-00001-of-00002.bin, .* no pytorch_model.bin.index.json",
        ),
        (["model-00002-of-00002.safetensors"], "but no model.safetensors.index.json"),
        (["model.fp16.safetensors"], "the weights of a variant; rename it to model.safetensors"),
        (["pytorch_model.bf16.bin"], "the weights of a variant; rename it to pytorch_model.bin"),
        (["config.json", "notes.txt"], "found config.json, notes.txt, expected config.json with"),
        ([], "found nothing, expected"),
    ],
)
def test_what_is_there_is_named_with_the_next_step(tmp_path, names, said):
    assert_matches(fill(tmp_path, *names), said)


def assert_matches(text, pattern):
    with pytest.raises(ValueError, match=pattern):
        raise ValueError(text)


def test_an_archive_one_folder_too_high_names_the_folder(tmp_path):
    said = fill(tmp_path, "uncased_L-2/bert_config.json", "uncased_L-2/bert_model.ckpt.index")
    assert said == f"not a model directory, but holds some: give {tmp_path}/uncased_L-2"


def test_a_cache_of_the_hub_names_its_snapshots(tmp_path):
    snapshot = "models--org--bert/snapshots/0f3a"
    said = fill(tmp_path, f"{snapshot}/config.json", "models--org--bert/refs/main")
    assert said.endswith(f"give {tmp_path}/{snapshot}")
    assert describe_folder(tmp_path / "models--org--bert").endswith(f"give {tmp_path}/{snapshot}")
