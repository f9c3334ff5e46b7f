// The fields of a configuration, listed once per struct and walked by visitors: reading YAML, writing it back, comparing, printing help.
#pragma once

#include <cstdint>
#include <limits>
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
};

class FieldVisitor {
 public:
  virtual ~FieldVisitor() = default;
  virtual void enter(const char* key, const char* help) = 0;
  virtual void leave() = 0;
  virtual void field(const Field& field, int64_t& value) = 0;
  virtual void field(const Field& field, uint64_t& value) = 0;
  virtual void field(const Field& field, double& value) = 0;
  virtual void field(const Field& field, bool& value) = 0;
  virtual void field(const Field& field, std::string& value) = 0;
  virtual void field(const Field& field, std::vector<double>& value) = 0;
  virtual void field(const Field& field, std::vector<std::string>& value) = 0;
};

// "recipe.optimizer.lr" -> "0.0003", in the order of the fields. Doubles in the shortest form that reads back the same.
using FlatConfig = std::vector<std::pair<std::string, std::string>>;

class Flattener : public FieldVisitor {
 public:
  explicit Flattener(bool with_paths) : with_paths_(with_paths) {}
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
  bool with_paths_;
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
