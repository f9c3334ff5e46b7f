// Elementary functions in double for tables, initial values and schedules. Our own, so that no libm version can move a bit: IEEE operations
// and fma in a fixed order, double-double where one double is not enough. Errors stay below 0.6 ulp (exp, log, pow) and 0.8 ulp (sin, cos).
#pragma once

#include <cstdint>

namespace dz::numerics {

double exp(double x);               // a result below the smallest normal number is +0, whatever the mode of the thread
double log(double x);               // log(+-0 and denormals) = -inf, log(x < 0) = NaN
double pow(double base, double y);  // base > 0; NaN for other bases (0 to a positive power is 0)

// Angles up to 2^20 in magnitude (RoPE at a million positions); larger or non-finite ones are DZ_CHECK errors.
double sin(double x);
double cos(double x);

// Phi^-1(p), the quantile of the standard normal distribution, relative error about 1e-15; +-inf at 0 and 1, NaN outside.
// Rational functions of M. J. Wichura, Algorithm AS 241, Applied Statistics 37 (1988).
double inverse_normal(double p);
// The x of erf(x) = y, the same way, also for small y; +-inf at +-1, NaN outside.
double inverse_erf(double y);

}  // namespace dz::numerics
