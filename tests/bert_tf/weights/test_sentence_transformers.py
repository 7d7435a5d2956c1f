"""Folders of sentence-transformers: their recipes of vectors, read and written."""

import json

import pytest
from tokenizers.normalizers import Lowercase

from bert_tf.base.errors import InputError, UsageError
from bert_tf.base.json_files import JsonFolder
from bert_tf.config.embedding_recipe import EmbeddingRecipe, prepared_texts
from bert_tf.weights.sentence_transformers import (
    read_recipe,
    recipe_notes,
    transformer_folder,
    write_recipe,
)
from pipeline.demo.plan import find_weights

RECIPE = EmbeddingRecipe(pooling="cls", normalize=True, max_seq_length=128, is_trained=True)


@pytest.fixture
def folder(tmp_path):
    write_recipe(tmp_path, RECIPE, hidden_size=8)
    return tmp_path


def edit(path, **changes):
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def test_what_the_library_does_beyond_the_recipe_is_said(folder):
    assert recipe_notes(JsonFolder(folder)) == ()
    edit(folder / "config_sentence_transformers.json", truncate_dim=16)
    (note,) = recipe_notes(JsonFolder(folder))
    assert "truncate_dim 16, to which sentence-transformers cuts vectors; they are whole" in note
    (folder / "model_head.pkl").write_bytes(b"\x80\x04N.")
    (folder / "config_setfit.json").write_text("{}")
    _, note = recipe_notes(JsonFolder(folder))
    assert "SetFit's classifier (model_head.pkl, config_setfit.json) is left out" in note
    (folder / "modules.json").unlink()
    assert recipe_notes(JsonFolder(folder)) == ()


@pytest.mark.parametrize("pooling", ["mean", "cls", "max"])
@pytest.mark.parametrize("normalize", [True, False])
def test_what_is_written_is_read(tmp_path, pooling, normalize):
    recipe = RECIPE.changed(pooling=pooling, normalize=normalize)
    write_recipe(tmp_path, recipe, hidden_size=8)
    assert read_recipe(tmp_path, max_positions=512) == EmbeddingRecipe(
        pooling=pooling, normalize=normalize, max_seq_length=128, is_trained=pooling == "cls"
    )


def test_an_untrained_recipe_stays_one(tmp_path):
    recipe = EmbeddingRecipe(pooling="cls", max_seq_length=128)
    write_recipe(tmp_path, recipe, hidden_size=8)
    assert read_recipe(tmp_path, max_positions=512) == recipe
    assert recipe.is_raw_cls


def test_the_published_folder_of_minilm_is_read():
    assert read_recipe(find_weights(None), max_positions=512) == EmbeddingRecipe(
        pooling="mean", normalize=True, max_seq_length=256, is_trained=True
    )


def test_release_6_names_a_pooling_by_one_key(folder):
    (folder / "1_Pooling" / "config.json").write_text(
        '{"embedding_dimension": 8, "pooling_mode": "max", "include_prompt": true}'
    )
    types = ["base.modules.transformer.Transformer", "sentence_transformer.modules.pooling.Pooling"]
    modules = [
        {"idx": index, "path": path, "type": f"sentence_transformers.{name}"}
        for index, (path, name) in enumerate(zip(["", "1_Pooling"], types, strict=True))
    ]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "sentence_bert_config.json").write_text('{"transformer_task": "x"}')
    (folder / "tokenizer_config.json").write_text('{"model_max_length": 64}')
    recipe = read_recipe(folder, max_positions=512)
    assert (recipe.pooling, recipe.normalize, recipe.max_seq_length) == ("max", False, 64)


def test_a_length_beyond_the_encoder_is_the_encoders(folder):
    assert read_recipe(folder, max_positions=32).max_seq_length == 32


def test_a_folder_without_modules_has_no_recipe(tmp_path):
    assert read_recipe(tmp_path, max_positions=512) is None
    assert transformer_folder(tmp_path) == tmp_path


def test_old_folders_keep_the_encoder_in_one_of_their_own(folder):
    modules = json.loads((folder / "modules.json").read_text())
    modules[0]["path"] = "0_Transformer"
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "0_Transformer").mkdir()
    assert transformer_folder(folder) == folder / "0_Transformer"


@pytest.mark.parametrize("path", ["..", "../other", "a/../../other", "/etc"])
@pytest.mark.parametrize("module", [0, 1])
def test_no_module_lies_outside_of_the_folder(folder, path, module):
    modules = json.loads((folder / "modules.json").read_text())
    modules[module]["path"] = path
    (folder / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(InputError, match=r"modules\.json: the path '.*' leads out of the folder"):
        read_recipe(folder, max_positions=512)


def test_modules_that_are_not_computed_are_refused(folder):
    modules = json.loads((folder / "modules.json").read_text())
    modules.append({"type": "sentence_transformers.models.Dense", "path": "3_Dense"})
    (folder / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(UsageError, match="lists Transformer, Pooling, Normalize, Dense; expected"):
        read_recipe(folder, max_positions=512)


def test_lower_casing_and_prompts_come_back(tmp_path):
    recipe = EmbeddingRecipe(
        max_seq_length=8,
        is_trained=True,
        lowercase_texts=True,
        prompts={"query": "q: ", "passage": "p: "},
        default_prompt="passage",
        similarity="dot",
    )
    write_recipe(tmp_path, recipe, hidden_size=8)
    assert read_recipe(tmp_path, max_positions=512) == recipe
    assert recipe.prompt() == recipe.prompt(recipe.prompt_name("document")) == "p: "
    assert recipe.prompt(recipe.prompt_name("query")) == "q: "
    # The library's default is not for texts of a kind.
    recipe = EmbeddingRecipe(max_seq_length=8, prompts={"query": "q: "}, default_prompt="query")
    assert recipe.prompt() == "q: "
    assert recipe.prompt(recipe.prompt_name("document")) == ""


def test_old_folders_keep_the_settings_in_the_encoders_folder(folder):
    modules = json.loads((folder / "modules.json").read_text())
    modules[0]["path"] = "0_Transformer"
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "0_Transformer").mkdir()
    (folder / "0_Transformer" / "sentence_bert_config.json").write_text(
        '{"max_seq_length": 7, "do_lower_case": true}'
    )
    recipe = read_recipe(folder, max_positions=512)
    assert (recipe.max_seq_length, recipe.lowercase_texts) == (7, True)


def test_letters_become_small_one_by_one_with_their_accents():
    # As `tokenizers.normalizers.Lowercase`: no other form of sigma at the end of a word.
    texts = ["ΣΑΣ", "Éa İ"]
    wanted = [Lowercase().normalize_str("Q: " + text) for text in texts]
    assert prepared_texts(texts, prompt="Q: ", lowercase=True) == wanted
    assert prepared_texts(texts, prompt="", lowercase=False) == texts


def test_other_poolings_and_prompts_are_refused(folder):
    edit(folder / "1_Pooling" / "config.json", pooling_mode_mean_sqrt_len_tokens=True)
    with pytest.raises(UsageError, match="pools by cls_token, mean_sqrt_len_tokens; expected one"):
        read_recipe(folder, max_positions=512)
    edit(folder / "1_Pooling" / "config.json", pooling_mode_mean_sqrt_len_tokens=False)
    settings = folder / "config_sentence_transformers.json"
    edit(settings, default_prompt_name="query")
    with pytest.raises(UsageError, match="default_prompt_name is 'query', but prompts has no such"):
        read_recipe(folder, max_positions=512)
    edit(settings, prompts={"query": 3})
    with pytest.raises(InputError, match="expected prompts to be texts by name"):
        read_recipe(folder, max_positions=512)
    edit(settings, prompts={"query": "q: "})
    edit(folder / "1_Pooling" / "config.json", include_prompt=False)
    with pytest.raises(UsageError, match="include_prompt is false"):
        read_recipe(folder, max_positions=512)


@pytest.mark.parametrize("content", ["{", "{}", "[1]", "[]", "[" * 200_000], ids=len)
def test_damaged_modules_are_one_line(folder, content):
    (folder / "modules.json").write_text(content)
    with pytest.raises(InputError, match=r"modules\.json: .*; expected|damaged .*; expected"):
        read_recipe(folder, max_positions=512)


def test_cls_is_raw_unless_the_model_was_trained_with_it():
    plain = EmbeddingRecipe(max_seq_length=8)
    assert plain.changed(pooling="cls").is_raw_cls
    assert not plain.is_raw_cls
    assert not RECIPE.changed(normalize=False).is_raw_cls
    assert RECIPE.changed(pooling="mean").changed(pooling="cls").is_raw_cls
