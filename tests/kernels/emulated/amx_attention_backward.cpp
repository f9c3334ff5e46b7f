// Attention backward of AMX, compiled a second time over emulated tiles and under another name.
#include "kernels/emulated/tiles.h"

#define amx amx_emulated
#include "kernels/amx/attention_backward.cpp"
