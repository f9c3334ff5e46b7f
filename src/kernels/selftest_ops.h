// The start-up self-test of every op but the matrix product: a few small cases with tails, special values and masks.
#pragma once

#include <string>

#include "kernels/op_cases.h"

namespace dz::kernels {

// Whether `form` gives the bits of `scalar` on the quick cases; else *what names the case and the first difference. A few milliseconds at most.
// The calling thread must run with flush-to-zero.
bool ops_agree(const Table& form, const Table& scalar, std::string* what);

// The same over a whole set, for `doctor`; *cases counts what was compared.
bool ops_agree(const Table& form, const Table& scalar, CaseSet set, std::string* what, int64_t* cases);

}  // namespace dz::kernels
