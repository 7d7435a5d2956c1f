"""`init`: from data to a commented config that the next commands take."""
