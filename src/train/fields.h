// The fields of a configuration, listed once per struct and walked by visitors: reading YAML, writing it back, comparing, printing help.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dz::train {

struct Field {
  const char* key;
  const char* help;                                         // one line, printed by --help-config
  double least = -std::numeric_limits<double>::infinity();  // numbers, and each number of a list
  double most = std::numeric_limits<double>::infinity();
  std::vector<std::string_view> allowed = {};  // strings; empty: any
  bool required = false;
  bool is_path = false;  // relative to the config file; no part of a recipe's identity (a digest is)
  bool added = false;    // takes part in the identity only with another value than its default, so that recipes without it keep theirs
};

class FieldVisitor {
 public:
  virtual ~FieldVisitor() = default;
  virtual void enter(const char* key, const char* help) = 0;
  // A section that may also be written as one value, that of its key `brief`: "order: olmo-core" for "order: {dialect: olmo-core}".
  virtual void enter(const char* key, const char* help, const char* /*brief*/) { enter(key, help); }
  virtual void leave() = 0;
  virtual void field(const Field& field, int64_t& value) = 0;
  virtual void field(const Field& field, uint64_t& value) = 0;
  virtual void field(const Field& field, double& value) = 0;
  virtual void field(const Field& field, bool& value) = 0;
  virtual void field(const Field& field, std::string& value) = 0;
  virtual void field(const Field& field, std::vector<double>& value) = 0;
  virtual void field(const Field& field, std::vector<std::string>& value) = 0;
};

// An enumeration as the string that the file has; names[i] is the value i.
template <class Enum>
void choice(FieldVisitor& visitor, Field field, std::vector<std::string_view> names, Enum& value) {
  std::string name(names[static_cast<size_t>(value)]);
  field.allowed = names;
  visitor.field(field, name);
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) value = static_cast<Enum>(i);
  }
}

// "recipe.optimizer.lr" -> "0.0003", in the order of the fields. Doubles in the shortest form that reads back the same.
using FlatConfig = std::vector<std::pair<std::string, std::string>>;

class Flattener : public FieldVisitor {
 public:
  // for_identity: without paths, and without fields that were added and have their value in `defaults`.
  Flattener() = default;
  explicit Flattener(const FlatConfig& defaults) : for_identity_(true), defaults_(defaults.begin(), defaults.end()) {}
  void enter(const char* key, const char* help) override;
  void leave() override;
  void field(const Field& field, int64_t& value) override;
  void field(const Field& field, uint64_t& value) override;
  void field(const Field& field, double& value) override;
  void field(const Field& field, bool& value) override;
  void field(const Field& field, std::string& value) override;
  void field(const Field& field, std::vector<double>& value) override;
  void field(const Field& field, std::vector<std::string>& value) override;
  FlatConfig take() { return std::move(flat_); }

 private:
  void put(const Field& field, std::string text);
  std::vector<std::string> path_;
  FlatConfig flat_;
  bool for_identity_ = false;
  std::map<std::string, std::string> defaults_;
};

// Makes every path absolute, so that a configuration keeps its meaning in another directory.
class PathMaker : public FieldVisitor {
 public:
  void enter(const char*, const char*) override {}
  void leave() override {}
  void field(const Field&, int64_t&) override {}
  void field(const Field&, uint64_t&) override {}
  void field(const Field&, double&) override {}
  void field(const Field&, bool&) override {}
  void field(const Field& field, std::string& value) override;
  void field(const Field&, std::vector<double>&) override {}
  void field(const Field& field, std::vector<std::string>& value) override;
};

// One line a field: path, default, help.
class HelpPrinter : public FieldVisitor {
 public:
  void enter(const char* key, const char* help) override;
  void leave() override;
  void field(const Field& field, int64_t& value) override { print(field, value); }
  void field(const Field& field, uint64_t& value) override { print(field, value); }
  void field(const Field& field, double& value) override { print(field, value); }
  void field(const Field& field, bool& value) override { print(field, value); }
  void field(const Field& field, std::string& value) override { print(field, value); }
  void field(const Field& field, std::vector<double>& value) override { print(field, value); }
  void field(const Field& field, std::vector<std::string>& value) override { print(field, value); }
  const std::string& text() const { return text_; }

 private:
  template <class Value>
  void print(const Field& field, Value& value);
  int depth_ = 0;
  std::string text_;
};

// YAML text of a flat configuration: nested maps in the given order.
std::string to_yaml(const FlatConfig& flat);

// The known name with the smallest edit distance, or "" when nothing is near.
std::string nearest(std::string_view name, const std::vector<std::string>& known);

}  // namespace dz::train
