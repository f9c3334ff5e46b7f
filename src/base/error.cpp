#include "base/error.h"

namespace dz {

std::string to_string(const Complaint& complaint) {
  std::string text = complaint.where;
  if (!complaint.found.empty()) text += (text.empty() ? "found " : ": found ") + complaint.found;
  if (!complaint.expected.empty()) {
    text += complaint.found.empty() ? ": expected " : ", expected ";
    text += complaint.expected;
  }
  if (!complaint.hint.empty()) text += "; " + complaint.hint;
  return text;
}

}  // namespace dz
