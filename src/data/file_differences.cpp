#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "base/error.h"
#include "data/bare_store.h"

namespace dz::data {
namespace {

using Json = nlohmann::json;

constexpr size_t kMostLines = 20;

struct ListedFile {
  std::string path;
  int64_t bytes = 0;
  std::string contents;                        // the hash, and that of the mask when there is one
  bool gone = false;                           // accounted for
  std::optional<size_t> place = std::nullopt;  // of a file of the run: where its bytes are now
};

struct Listing {
  std::string dtype, digest;
  int64_t vocab_size = 0, eos_id = 0, bos_id = 0;
  Json mixture;  // which parts of the files a source mixture takes
  std::vector<ListedFile> files;
};

Listing parse(std::string_view text, const char* which) {
  try {
    const Json json = Json::parse(text);
    Listing listing{.dtype = json.at("dtype"),
                    .digest = json.at("digest"),
                    .vocab_size = json.at("vocab_size"),
                    .eos_id = json.at("eos_id"),
                    .bos_id = json.at("bos_id"),
                    .mixture = json.value("mixture", Json()),
                    .files = {}};
    for (const Json& file : json.at("files"))
      listing.files.push_back(
          {.path = file.at("path"), .bytes = file.at("bytes"), .contents = file.at("sha256").get<std::string>() + file.value("mask_sha256", "")});
    return listing;
  } catch (const Json::exception& error) {
    throw DataError(Complaint{.where = which, .found = error.what(), .expected = "a manifest of token files", .hint = ""});
  }
}

class Comparison {
 public:
  Comparison(Listing run, Listing now) : run_(std::move(run)), now_(std::move(now)) {}

  std::vector<std::string> lines() {
    if (run_.digest == now_.digest) return {};
    field("dtype", run_.dtype, now_.dtype);
    field("vocab_size", std::to_string(run_.vocab_size), std::to_string(now_.vocab_size));
    field("eos_id", std::to_string(run_.eos_id), std::to_string(now_.eos_id));
    field("bos_id", std::to_string(run_.bos_id), std::to_string(now_.bos_id));
    drop_unchanged();
    find_changed();
    match_contents();
    find_missing_and_new();
    find_moved();
    if (lines_.size() > kMostLines) {
      const size_t more = lines_.size() - kMostLines;
      lines_.resize(kMostLines);
      lines_.push_back(fmt::format("and {} more", more));
    }
    if (lines_.empty() && run_.mixture != now_.mixture) lines_.push_back("mixture: other parts of the same files");
    if (lines_.empty()) lines_.push_back(fmt::format("digest: {} in the run, {} now", run_.digest, now_.digest));
    return lines_;
  }

 private:
  void field(const char* name, const std::string& run, const std::string& now) {
    if (run != now) lines_.push_back(fmt::format("{}: {} in the run, {} now", name, run, now));
  }

  // The same bytes at the same place, whatever the file is called.
  void drop_unchanged() {
    for (size_t i = 0; i < std::min(run_.files.size(), now_.files.size()); ++i) {
      if (run_.files[i].contents != now_.files[i].contents) continue;
      run_.files[i].gone = now_.files[i].gone = true;
      run_.files[i].place = i;
    }
  }

  static std::optional<size_t> find(const std::vector<ListedFile>& files, const std::string ListedFile::*what, const std::string& value) {
    for (size_t i = 0; i < files.size(); ++i) {
      if (!files[i].gone && files[i].*what == value) return i;
    }
    return std::nullopt;
  }

  // A file that has the same path and other bytes. When those are another file's of the run, and that one has these, they were swapped.
  void find_changed() {
    for (ListedFile& run : run_.files) {
      const std::optional<size_t> at = run.gone ? std::nullopt : find(now_.files, &ListedFile::path, run.path);
      if (!at || now_.files[*at].contents == run.contents) continue;
      ListedFile& now = now_.files[*at];
      for (ListedFile& other : run_.files) {
        const std::optional<size_t> twin =
            other.gone || &other == &run || other.contents != now.contents ? std::nullopt : find(now_.files, &ListedFile::path, other.path);
        if (!twin || now_.files[*twin].contents != run.contents) continue;
        lines_.push_back(fmt::format("{} and {}: their contents are swapped", run.path, other.path));
        run.gone = now.gone = other.gone = now_.files[*twin].gone = true;
        break;
      }
      if (run.gone) continue;
      if (now.bytes != run.bytes) {
        lines_.push_back(fmt::format("{}: {} from {} to {} bytes", run.path, now.bytes < run.bytes ? "shortened" : "grown", run.bytes, now.bytes));
      } else {
        lines_.push_back(
            fmt::format("{}: changed content, sha256 {}... in the run, {}... now", run.path, run.contents.substr(0, 12), now.contents.substr(0, 12)));
      }
      run.gone = now.gone = true;
    }
  }

  // The rest by contents: where each file of the run is now.
  void match_contents() {
    std::map<std::string, std::vector<size_t>> places;  // last first
    for (size_t i = now_.files.size(); i-- > 0;) {
      if (!now_.files[i].gone) places[now_.files[i].contents].push_back(i);
    }
    for (size_t i = 0; i < run_.files.size(); ++i) {
      ListedFile& run = run_.files[i];
      const auto found = run.gone ? places.end() : places.find(run.contents);
      if (found == places.end() || found->second.empty()) continue;
      run.place = found->second.back();
      found->second.pop_back();
      run.gone = now_.files[*run.place].gone = true;
    }
  }

  void find_missing_and_new() {
    for (const ListedFile& run : run_.files) {
      if (!run.gone) lines_.push_back(fmt::format("{}: missing", run.path));
    }
    for (const ListedFile& now : now_.files) {
      if (!now.gone) lines_.push_back(fmt::format("{}: new", now.path));
    }
  }

  // The files outside a longest list whose order is kept: so a file that is missing, or moved to the end, is not told of all behind it.
  void find_moved() {
    std::vector<size_t> tails;  // run files that end a rising list of each length, with the least place
    std::vector<std::optional<size_t>> before(run_.files.size());
    for (size_t i = 0; i < run_.files.size(); ++i) {
      if (!run_.files[i].place) continue;
      const auto at = std::lower_bound(tails.begin(), tails.end(), *run_.files[i].place,
                                       [&](size_t file, size_t place) { return *run_.files[file].place < place; });
      if (at != tails.begin()) before[i] = *(at - 1);
      if (at == tails.end()) {
        tails.push_back(i);
      } else {
        *at = i;
      }
    }
    std::set<size_t> kept;
    for (std::optional<size_t> i = tails.empty() ? std::nullopt : std::optional(tails.back()); i; i = before[*i]) kept.insert(*i);
    for (size_t i = 0; i < run_.files.size(); ++i) {
      if (run_.files[i].place && !kept.contains(i))
        lines_.push_back(fmt::format("{}: reordered, was number {} of the files, is number {}", run_.files[i].path, i + 1, *run_.files[i].place + 1));
    }
  }

  Listing run_, now_;
  std::vector<std::string> lines_;
};

}  // namespace

std::vector<std::string> file_differences(std::string_view run, std::string_view now) {
  return Comparison(parse(run, "the run's data manifest"), parse(now, "the data manifest")).lines();
}

}  // namespace dz::data
