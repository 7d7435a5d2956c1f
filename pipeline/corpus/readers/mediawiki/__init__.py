"""MediaWiki dumps: from the XML of a wiki to the prose of its articles."""
