// Elementary functions in double for tables, initial values and schedules. Our own, so that no libm version can move a bit: IEEE operations
// and fma in a fixed order, double-double where one double is not enough. About 0.5 ulp for pow and exp, 1 ulp for log, sin and cos.
#pragma once

#include <cstdint>

namespace dz::numerics {

double exp(double x);              // 0 below -745.2 (denormals are flushed under FTZ), inf above 709.8
double log(double x);              // log(+-0) = -inf, log(x < 0) = NaN
double pow(double base, double y);  // base > 0; NaN for other bases (0 to a positive power is 0)

// Angles up to 2^20 in magnitude (RoPE at a million positions); larger or non-finite ones are DZ_CHECK errors.
double sin(double x);
double cos(double x);

// Phi^-1(p), the quantile of the standard normal distribution, relative error about 1e-15; +-inf at 0 and 1, NaN outside.
// Rational functions of M. J. Wichura, Algorithm AS 241, Applied Statistics 37 (1988).
double inverse_normal(double p);

}  // namespace dz::numerics
