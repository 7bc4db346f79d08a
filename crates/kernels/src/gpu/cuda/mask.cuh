// Dropout's mask: the hash of mask.rs, of a seed that is read from memory.
DEV u64 mix(u64 x) {
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

// Seed of the mask on the residual sum in the nth dropout of a step; `seed` is the step's, low word
// first. It is not a scalar, because a graph of launches keeps its scalars.
DEV u64 residual_seed(const u32* seed, u64 nth) {
  u64 step = seed[0] | (u64)seed[1] << 32;
  return mix(mix(mix(step) ^ mix(nth)) ^ (0x5bf03635ull + 1));
}

DEV u64 row_key(u64 seed, u64 row) { return mix(seed + row * 0x9e3779b97f4a7c15ull); }

// Whether the element of this column is kept; dropped are 24-bit hashes below `threshold`.
DEV bool is_kept(u64 key, u32 column, u32 threshold) {
  u32 x = column * 0x9e3779b9u ^ (u32)key;
  x = (x ^ (x >> 16)) * 0x7feb352du ^ (u32)(key >> 32);
  x = (x ^ (x >> 15)) * 0x846ca68bu;
  return ((x ^ (x >> 16)) >> 8) >= threshold;
}
