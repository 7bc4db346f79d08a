// Places of the elements of the encoder's matrices, [in, out], in its parameters. `n` is the number
// of elements.
// [out, frame, row, column]
DEV u32 conv1_order(u32 i, u32) { return i % 32 * 256 + i / 32; }
// Rows are (block's row, block's column, row, column, channel); the parameter is [out, in, 4, 4].
DEV u32 conv2_order(u32 i, u32) {
  u32 out = i % 64, k = i / 64, channel = k % 32;
  u32 row = (k >> 8 & 1) << 1 | (k >> 6 & 1), column = (k >> 7 & 1) << 1 | (k >> 5 & 1);
  return ((out * 32 + channel) * 4 + row) * 4 + column;
}
// Rows are (row, column, channel); the parameter is [out, in, 3, 3].
DEV u32 conv3_order(u32 i, u32) {
  u32 out = i % 64, k = i / 64;
  return (out * 64 + k % 64) * 9 + k / 64;
}
// Rows are (place, channel); the parameter's are (channel, place).
DEV u32 linear_order(u32 i, u32 n) {
  u32 width = n / (49 * 64), row = i / width;
  return (row % 64 * 49 + row / 64) * width + i % width;
}
