"""Policies that choose a codec's parameters during training; they are not codecs."""
