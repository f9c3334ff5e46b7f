#include "kernels/selftest_ops.h"

#include <vector>

namespace dz::kernels {

bool ops_agree(const Table& form, const Table& scalar, CaseSet set, std::string* what, int64_t* cases) {
  for (const OpCase& one : op_cases(set)) {
    const PreparedCase expected = one.prepare(OpFault::kNone), found = one.prepare(OpFault::kNone);
    expected.run(scalar, 0, expected.units);
    found.run(form, 0, found.units);
    const std::string difference = first_difference(found, expected);
    if (!difference.empty()) {
      *what = one.name + ": " + difference;
      return false;
    }
    ++*cases;
  }
  return true;
}

bool ops_agree(const Table& form, const Table& scalar, std::string* what) {
  int64_t cases = 0;
  return ops_agree(form, scalar, CaseSet::kQuick, what, &cases);
}

}  // namespace dz::kernels
