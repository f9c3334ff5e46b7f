// Reads YAML into structs through their fields, strictly: unknown, repeated and missing keys, wrong types and numbers out of range are
// ConfigErrors that name file, line and key, what was found and what was expected.
#pragma once

#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "train/fields.h"

namespace dz::train {

class YamlReader : public FieldVisitor {
 public:
  // `name` is what messages call the text: usually its path. Relative paths in it are resolved against `base`.
  YamlReader(const std::string& text, std::string name, std::filesystem::path base);
  ~YamlReader() override;

  // "section.key=value", the value written as YAML; before any field is read. UsageError when malformed.
  void set(const std::string& assignment);

  void enter(const char* key, const char* help) override;
  void enter(const char* key, const char* help, const char* brief) override;
  void leave() override;  // complains about a key of the section that no field asked for
  void field(const Field& field, int64_t& value) override;
  void field(const Field& field, uint64_t& value) override;
  void field(const Field& field, double& value) override;
  void field(const Field& field, bool& value) override;
  void field(const Field& field, std::string& value) override;
  void field(const Field& field, std::vector<double>& value) override;
  void field(const Field& field, std::vector<std::string>& value) override;
  void finish();  // complains about a section that nobody entered

  // Whether the text gives this key ("recipe.data.seed"): for defaults that depend on other keys.
  bool has(const std::string& path) const { return given_.contains(path); }
  // A path as the field `path` has it: relative to the text's base, or to the working directory when --set gave it.
  std::string resolved(const std::string& path, const std::string& value) const;
  // "name:line: path" of a key, for complaints about combinations.
  std::string where(const std::string& path) const;

 private:
  struct Level;
  struct Source;
  std::string path_of(const char* key) const;
  // The node of a field, or null when the text lacks it.
  const void* find(const Field& field);
  void complain_unknown(const Level& level) const;
  [[noreturn]] void complain(const std::string& path, const std::string& found, const std::string& expected) const;

  std::unique_ptr<Source> source_;
  std::string name_;
  std::filesystem::path base_;
  std::vector<Level> levels_;
  std::set<std::string> given_;
  std::vector<std::string> known_;
};

}  // namespace dz::train
