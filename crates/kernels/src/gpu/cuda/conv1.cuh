// The first convolution of the encoder: stacks of four frames of 84 x 84 bytes, 8 x 8 with stride 4,
// 32 channels, 20 x 20 places. Products read the bytes themselves: factors have all of 0 to 255
// exactly.
//
// Windows are `steps` + 3 successive frames, of which stack k of a window is frames k to k + 3.
static const int SIDE = 84, FRAME = SIDE * SIDE, OUT = 20, PLACES = OUT * OUT, CHANNELS = 32;
static const int WEIGHTS = 4 * 8 * 8;

DEV const u8* stack_of(const u8* windows, u64 n, u64 steps) {
  return windows + (n / steps * (steps + 3) + n % steps) * FRAME;
}
// Copies `rows` rows of each of four frames to shared memory, a multiple of four.
DEV void copy_rows(u8* to, const u8* from, int rows) {
  const int chunks = rows * SIDE / 16;
  for (int i = threadIdx.x; i < 4 * chunks; i += 256)
    copy16(to + i * 16, from + i / chunks * FRAME + i % chunks * 16);
}
// Channel 0 of a place in the result. Places are stored in blocks of 2 x 2, so that the next
// convolution, 4 x 4 with stride 2, is one of 2 x 2 with stride 1 over 128 channels.
DEV size_t in_blocks(u64 n, int p) {
  int y = p / OUT, x = p % OUT;
  return (((n * (OUT / 2) + y / 2) * (OUT / 2) + x / 2) * 4 + y % 2 * 2 + x % 2) * CHANNELS;
}
// A byte as f32: 2^23 + x has x in its lowest bits.
DEV float pixel(u32 word, int byte) {
  return as_float(__byte_perm(word, 0x4b000000u, 0x7440u | byte)) - 8388608.0f;
}
