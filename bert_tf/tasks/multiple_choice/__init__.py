"""Choosing the right one of several texts: SWAG, RACE, questions with given answers."""
