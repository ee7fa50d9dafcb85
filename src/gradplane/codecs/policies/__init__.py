"""What chooses a codec's parameters while training goes on; no codecs themselves."""
