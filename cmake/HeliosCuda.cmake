# CUDA is optional: AUTO uses the toolkit where there is one, ON requires it, OFF never looks.
set(HELIOS_CUDA AUTO CACHE STRING "AUTO, ON or OFF")
