"""Training of the neural engine: configuration, data on the device, the loop, schedules, checkpoints."""

from .config import Config, preset

__all__ = ["Config", "preset"]
