//! The tiers of the test suite. Tests whose path contains `full::` belong to the full tier; the
//! profiles of `.config/nextest.toml` select by that.

use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail, ensure};
use rustix::process::geteuid;

use crate::metadata::Metadata;
use crate::nextest::{self, Selection};
use crate::oldest_rust::{self, Outcome};
use crate::output::print_line;
use crate::run_folder::Sweep;
use crate::session::{Session, Tests};
use crate::{
    architecture, book, doc_tests, docs, layers, lengths, metadata, resource_bounds, sources,
    specification, unchanged, workspace,
};

/// Named part of the full tier or of the campaigns.
pub(crate) struct Part {
    pub(crate) name: &'static str,
    pub(crate) description: &'static str,
    run: fn(&mut Session) -> Result<()>,
}

/// Parts of the full tier. Each takes at most 30 minutes on two CPUs.
pub(crate) const FULL: &[Part] = &[
    Part {
        name: "guard",
        description: "everything that `make test` runs, with new cases of the property tests",
        run: guard_with_new_cases,
    },
    Part {
        name: "long",
        description: "long and repetitive tests with peers and kills",
        run: long_tests,
    },
    Part {
        name: "soak",
        description: "12 minutes of load of every kind on one daemon, whose memory must not grow",
        run: soak,
    },
    Part { name: "lab", description: "every plan of the lab, small", run: lab },
    Part {
        name: "compilers",
        description: "oldest supported Rust, release profile",
        run: compilers,
    },
    Part { name: "fuzz", description: "every fuzz target for a minute", run: fuzz },
    Part { name: "simulation", description: "1000 seeds of each scenario", run: simulation },
    Part { name: "packages", description: "Debian packages on Debian 12 and 13", run: packages },
];

/// Open-ended runs, which are run once for an issue that requests one.
pub(crate) const CAMPAIGNS: &[Part] = &[
    Part { name: "swarm", description: "10 000 seeds of each scenario", run: swarm },
    Part { name: "kills", description: "1000 kills of the daemon under load", run: kills },
    Part {
        name: "soak",
        description: "the same load until the daemon has executed 10^8 requests",
        run: long_soak,
    },
    Part { name: "fuzz", description: "every fuzz target for an hour", run: fuzz_for_an_hour },
];

/// Environment variables that set the number of kills of the tests that kill the daemon.
const KILLS: [(&str, &str); 2] = [("SUIMON_DISK_DEATHS", "1000"), ("SUIMON_VM_DEATHS", "1000")];

/// Environment variables that set the minimum work of the soak test, in at least 12 minutes.
const SOAK: [(&str, &str); 3] = [
    ("SUIMON_SOAK_REQUESTS", "100000000"),
    ("SUIMON_SOAK_CALLS", "1000000"),
    ("SUIMON_SOAK_CONNECTIONS", "100000"),
];

/// Runs the parts with the given names, or all if none is given.
///
/// # Errors
/// There is no such part, or a stage failed.
pub(crate) fn run_parts(session: &mut Session, parts: &[Part], names: &[&str]) -> Result<()> {
    for name in names {
        let known: Vec<&str> = parts.iter().map(|part| part.name).collect();
        ensure!(known.contains(name), "no part {name}; the parts are {}", known.join(", "));
    }
    check_root()?;
    for part in parts.iter().filter(|part| names.is_empty() || names.contains(&part.name)) {
        print_line(format_args!("\n==> part {}: {}", part.name, part.description));
        (part.run)(session)?;
    }
    Ok(())
}

/// Runs the checks and tests that guard a change, except test programs that have not changed since
/// their tests passed.
pub(crate) fn guard(session: &mut Session) -> Result<()> {
    guard_with(session, None)
}

/// Runs all checks and tests that guard a change.
pub(crate) fn guard_all(session: &mut Session) -> Result<()> {
    unchanged::forget_passed(&metadata::read(session.root())?)?;
    guard_with(session, None)
}

fn guard_with_new_cases(session: &mut Session) -> Result<()> {
    let seed = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    guard_with(session, Some(seed))
}

fn guard_with(session: &mut Session, seed: Option<u64>) -> Result<()> {
    check_root()?;
    session.check("format", |session| run_cargo(session, &["fmt", "--all", "--check"]));
    session.check("layers", |session| layers::check(session.root()));
    session.check("specification", |session| specification::check(session.root()));
    session.check("architecture", |session| architecture::check(session.root()));
    session.check("resource bounds", |session| resource_bounds::check(session.root()));
    lengths::report(session.root())?;
    if !build(session) {
        return Ok(());
    }
    session.check("generated documents", |session| docs::check(session.root()));
    session.check("book", book::check);
    let skips_unchanged = seed.is_none();
    let selection = Selection { profile: "default", seed, skips_unchanged, ..Selection::default() };
    tests(session, "tests", &selection);
    session.check("documentation examples", doc_tests::run);
    Ok(())
}

/// Builds and tests one package: its tests of the fast tier, or those of any tier with a name.
pub(crate) fn package(session: &mut Session, name: &str, test: Option<&str>) -> Result<()> {
    let metadata = metadata::read(session.root())?;
    let package = metadata.packages.iter().find(|package| package.name == name);
    let package = package.with_context(|| {
        format!("there is no crate {name}; `cargo tree --workspace --depth 0` lists them")
    })?;
    let filter = match test {
        Some(test) => {
            check_test(&metadata, test)?;
            Some(nextest::test_filter(test))
        }
        None => None,
    };
    let profile = if test.is_some() { "full" } else { "default" };
    if !package.starts_programs() {
        let selection = Selection { profile, filter, package: Some(name), ..Selection::default() };
        run_tests(session, "tests", &selection);
        return Ok(());
    }
    check_root()?;
    if build(session) {
        let of_package = format!("package(={name})");
        let filter = Some(filter.map_or(of_package.clone(), |test| of_package + " & " + &test));
        tests(session, "tests", &Selection { profile, filter, ..Selection::default() });
    }
    Ok(())
}

/// Builds everything and runs the tests with this name, of any package and tier.
pub(crate) fn one_test(session: &mut Session, name: &str) -> Result<()> {
    check_test(&metadata::read(session.root())?, name)?;
    check_root()?;
    if build(session) {
        let filter = Some(nextest::test_filter(name));
        tests(session, "tests", &Selection { profile: "full", filter, ..Selection::default() });
    }
    Ok(())
}

/// Fails before anything is built if no test can have this name.
fn check_test(metadata: &Metadata, test: &str) -> Result<()> {
    let last = test.rsplit([':', ' ']).next().unwrap_or(test);
    for package in &metadata.packages {
        for file in sources::rust_files(package.folder())? {
            let is_named_so = file.file_stem().is_some_and(|stem| stem.to_string_lossy() == last);
            if is_named_so || std::fs::read_to_string(&file)?.contains(last) {
                return Ok(());
            }
        }
    }
    bail!("there is no test {test}: no source file contains {last}")
}

/// Fails unless this process may create namespaces and devices.
fn check_root() -> Result<()> {
    ensure!(
        geteuid().is_root(),
        "the tests make namespaces and devices: run this as root; `make test CRATE=NAME` also tests \
         a crate without programs as another user"
    );
    Ok(())
}

fn long_tests(session: &mut Session) -> Result<()> {
    let filter = "test(/(^|::)full::/) - binary_id(suimon-rig::lab) - test(/^soak::/)";
    full_tests(session, "long tests", filter);
    Ok(())
}

fn soak(session: &mut Session) -> Result<()> {
    full_tests(session, "soak test", "test(/^soak::full::/)");
    Ok(())
}

fn lab(session: &mut Session) -> Result<()> {
    full_tests(session, "plans of the lab", "binary_id(suimon-rig::lab)");
    Ok(())
}

fn full_tests(session: &mut Session, name: &str, filter: &str) {
    if build(session) {
        let filter = Some(filter.to_owned());
        tests(session, name, &Selection { profile: "full", filter, ..Selection::default() });
    }
}

fn compilers(session: &mut Session) -> Result<()> {
    session.stage("oldest supported Rust", |session| {
        let mut tests = Tests::default();
        match oldest_rust::check(session)? {
            Outcome::Compiles => tests.passed = 1,
            Outcome::NotInstalled(reason) => {
                tests.not_run.push(format!("oldest supported Rust: {reason}"));
            }
        }
        Ok(tests)
    });
    session.check("release profile", build_release);
    Ok(())
}

/// Builds the programs of the Debian package in the release profile.
fn build_release(session: &Session) -> Result<()> {
    let packages = ["suimond", "suimon", "suimon-lab", "suimon-sim"];
    let packages = packages.iter().flat_map(|package| ["--package", package]);
    let arguments: Vec<&str> = ["build", "--release"].into_iter().chain(packages).collect();
    run_cargo(session, &arguments)
}

fn fuzz(session: &mut Session) -> Result<()> {
    fuzz_for(session, "60")
}

fn fuzz_for_an_hour(session: &mut Session) -> Result<()> {
    fuzz_for(session, "3600")
}

fn fuzz_for(session: &mut Session, seconds: &str) -> Result<()> {
    session.check("fuzz targets", |session| {
        run_script(session, "scripts/fuzz", &[], &[("FUZZ_SECONDS", seconds)])
    });
    Ok(())
}

fn simulation(session: &mut Session) -> Result<()> {
    swarms(session, "1000");
    Ok(())
}

fn swarm(session: &mut Session) -> Result<()> {
    swarms(session, "10000");
    Ok(())
}

/// Scenarios that are run with many seeds.
const SWARM_SCENARIOS: [&str; 4] =
    ["qos-host", "qos-cluster-min", "cluster-faults", "vmq-max-processors"];

fn swarms(session: &mut Session, seeds: &str) {
    let is_built = session.check("build of the simulator", |session| {
        run_cargo(session, &["build", "--release", "--package", "suimon-sim"])
    });
    if !is_built {
        return;
    }
    for scenario in SWARM_SCENARIOS {
        session.check(&format!("{seeds} seeds of {scenario}"), |session| {
            let sim = metadata::read(session.root())?.target_directory.join("release/sim");
            let file = format!("apps/sim/scenarios/{scenario}.toml");
            let mut command = Command::new(sim);
            command.current_dir(session.root()).args(["swarm", &file, "--seeds", seeds]);
            let status = session.run(&mut command)?;
            ensure!(status.success(), "a seed failed ({status}); see above");
            Ok(())
        });
    }
}

fn packages(session: &mut Session) -> Result<()> {
    let is_built = session
        .check("console page", |session| run_script(session, "scripts/console", &[], &[]))
        && session.check("release build", build_release);
    if is_built {
        session.check("packages on Debian 12 and 13", |session| {
            run_script(session, "scripts/package-test", &[], &[])
        });
    }
    Ok(())
}

fn kills(session: &mut Session) -> Result<()> {
    if build(session) {
        let filter = Some("test(/deaths::full::/)".to_owned());
        let selection =
            Selection { profile: "campaign", filter, environment: &KILLS, ..Selection::default() };
        tests(session, "1000 kills of the daemon", &selection);
    }
    Ok(())
}

fn long_soak(session: &mut Session) -> Result<()> {
    if build(session) {
        let filter = Some("test(/soak::full::/)".to_owned());
        let selection =
            Selection { profile: "campaign", filter, environment: &SOAK, ..Selection::default() };
        tests(session, "requests, API calls and connections until the goals are met", &selection);
    }
    Ok(())
}

/// Builds the console's page, then everything else. Returns true if both succeeded.
fn build(session: &mut Session) -> bool {
    // Built first, because the daemon embeds the page.
    session
        .check("console page", |session| run_script(session, "scripts/console", &["--check"], &[]))
        && session.check("build and lints", |session| {
            let mut command = workspace::build(session.root())?;
            let status = session.run(command.args(workspace::BUILD_ALL))?;
            ensure!(status.success(), "the workspace does not compile without warnings");
            Ok(())
        })
}

/// Runs tests, after the files that their guests boot and the tools of the full tier were
/// downloaded: tests have no network.
fn tests(session: &mut Session, name: &str, selection: &Selection<'_>) {
    let is_prepared = session.check("guest files", |session| {
        let program = metadata::read(session.root())?.target_directory.join("debug/guest-files");
        let status = session.run(&mut Command::new(program))?;
        ensure!(status.success(), "the files of test guests cannot be made");
        Ok(())
    });
    let is_prepared = is_prepared
        && (selection.profile != "full"
            || session.check("tools of the OpenAPI tests", |session| {
                run_script(session, "scripts/openapi-tools", &[], &[])
            }));
    if !is_prepared {
        return;
    }
    run_tests(session, name, selection);
}

fn run_tests(session: &mut Session, name: &str, selection: &Selection<'_>) {
    session.stage(name, |session| {
        nextest::check_installed(session.root())?;
        let _sweep = Sweep::begin(session.root())?;
        nextest::run(session, selection)
    });
}

fn run_cargo(session: &Session, arguments: &[&str]) -> Result<()> {
    let status = session.run(workspace::cargo(session.root()).args(arguments))?;
    ensure!(status.success(), "cargo {} failed", arguments.join(" "));
    Ok(())
}

fn run_script(
    session: &Session,
    script: &str,
    arguments: &[&str],
    environment: &[(&str, &str)],
) -> Result<()> {
    let mut command = Command::new(session.root().join(script));
    command.current_dir(session.root()).args(arguments).envs(environment.iter().copied());
    let status = session.run(&mut command)?;
    ensure!(status.success(), "{script} failed ({status})");
    Ok(())
}
