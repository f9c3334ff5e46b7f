// deltazero report RUN: the run as one HTML page.
#include "track/report.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "cli/cli.h"

namespace dz::cli {

void add_report(CLI::App& app) {
  CLI::App* verb = app.add_subcommand("report", "write RUN/report.html: curves, held-out loss, certificates, samples, environment");
  verb->footer("The page is complete in itself: it opens without a network. Run it again whenever the run went on.");
  auto run = std::make_shared<std::string>();
  verb->add_option("RUN", *run, "run directory")->required();
  verb->callback([run] { std::printf("report  %s\n", track::write_report(*run).c_str()); });
}

}  // namespace dz::cli
