"""Run folders: the recorder of the hosts' logs, the manifest, the summary, and reading them back.

Everything that is read is checked.
experiment.
"""
