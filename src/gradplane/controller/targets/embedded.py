"""gradplane's own switch: it takes P4 source as its device config and compiles it itself."""

DEVICE_ID = 0
BATCH = 512


def device_config(config: bytes) -> bytes:
    """The program's source, as `gradplane.switch.p4runtime.device_config` packs it."""
    return config
