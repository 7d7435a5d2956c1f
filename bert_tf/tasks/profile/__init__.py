"""Statistics of a model's rows, by which `score` judges the predictions of new rows."""
