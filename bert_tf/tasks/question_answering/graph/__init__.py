"""Windows, spans and answers as operations of the exported graph."""
