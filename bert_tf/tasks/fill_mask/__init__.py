"""The most likely tokens for masks, by the masked-LM head."""
