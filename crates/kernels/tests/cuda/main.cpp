// All kernels in CUDA C++ against f64.
#include "encoder.h"
#include "outer.h"
#include "passes.h"
#include "products.h"

int main() {
  setvbuf(stdout, nullptr, _IOLBF, 0);  // a trap does not flush
  products();
  outer_products();
  encoder<OfBf16>();
  encoder<OfF32>();
  passes<OfBf16>();
  passes<OfF32>();
}
