"""TNA as machine code: gradplane.switch.arch.tna.pipeline, step by step."""
from gradplane.switch.jit.traffic_manager import Traffic
class TnaTraffic(Traffic):
    pass
