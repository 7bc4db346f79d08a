// All kernels in CUDA C++ against f64.
#include "encoder.h"
#include "outer.h"
#include "products.h"

int main() {
  products();
  outer_products();
  encoder();
}
