# Where HDF5's C library looks for filters that are not compiled in, unless HDF5_PLUGIN_PATH says
# it: nowhere. Its own default is a folder of the machine that compiles it, and whoever can write
# there would decide which code a file loads. A list of paths without a path; an empty one counts as
# none said.
set(H5_DEFAULT_PLUGINDIR ":")
# Nor does the library carry a text about the machine that compiled it.
set(HDF5_ENABLE_EMBEDDED_LIBINFO OFF CACHE BOOL "" FORCE)
