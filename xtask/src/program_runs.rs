//! How test programs are run: one after the other, or some of them beside each other, and a second
//! time where that is allowed.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use crate::cpu_use::{Moment, Took};
use crate::test_program::{Outcome, TestProgram};
use crate::totals::Totals;

/// The crates whose tests use real time and parts nobody here wrote.
const REAL: &str = "testing";

/// Of them the one whose tests start daemons and guests, one at a time.
const RIG: &str = "testing/rig";

/// Test programs whose tests mostly wait for timers, each in devices of its own if it has any; and how
/// many of them run at a time.
const PATIENT: &[(&str, &str, u8)] =
    &[("testing/rig", "lacp_conformance", 4), ("plane/node", "suimon_node", 8)];

/// Test programs of the rig that may run beside another of these, those that take longest first:
/// they tell what happens, not how fast, and mostly wait for daemons and guests to start. What
/// others leave behind does not matter to them.
const SOCIABLE: &[&str] = &[
    "lab",
    "console",
    "virtual_machines",
    "lab_ends",
    "package",
    "systemd",
    "legacy",
    "moving",
    "moving_shared",
    "sriov",
    "guest_nbd",
    "guest_agent",
    "failover",
    "vms",
    "vm_deaths",
    "disk_deaths",
    "disk_faults",
    "disk_jobs",
    "disk_job_progress",
    "disk_openings",
    "disks",
    "nbd_servers",
    "uplinks",
    "xdp_uplinks",
    "offload_show",
    "control_queue",
    "control_sockets",
    "api",
    "command_line",
    "host_file",
    "monitoring",
    "recording",
];

/// Test programs of the rig that may run beside another of these and no others: they measure, and
/// leave most of the CPUs to whoever wants them, for they wait for timers and slow devices.
const QUIET: &[&str] = &["lacp_conformance", "team_flapping", "cluster_qos", "cluster_policy"];

/// Test programs of the rig that may run beside another of these and no others, those that take
/// longest first: they need one CPU at most, and what they ask for they get also where the
/// other one is busy.
const SPARING: &[&str] = &["iov_moving", "survival", "iov_nics", "light_guests"];

/// How many of any of these run at a time.
const LANES: usize = 2;

/// So many test programs may have tests run a second time. If more need that, it is not
/// the machine.
const SECOND_RUNS_MAX: usize = 3;

/// Runs them all, and adds up their totals: own tests beside `meanwhile`, those of real time
/// without it.
pub(crate) fn run_own<T: Send>(
    root: &Path,
    programs: &[TestProgram],
    totals: &mut Totals,
    meanwhile: impl FnOnce() -> T + Send,
) -> std::thread::Result<T> {
    let own = programs.iter().filter(|of| is_own(root, of));
    std::thread::scope(|scope| {
        let other = scope.spawn(meanwhile);
        own.for_each(|program| run_alone(root, program, totals));
        other.join()
    })
}

/// Runs those of real time, with those of the rig if it is wanted, and adds up their totals.
pub(crate) fn run_real(root: &Path, programs: &[TestProgram], totals: &mut Totals, with_rig: bool) {
    let real = programs.iter().filter(|of| !is_own(root, of));
    let wanted = real.filter(|of| with_rig || !is_of_rig(of));
    let (sociable, others) = listed(SOCIABLE, wanted.collect());
    let (quiet, others) = listed(QUIET, others);
    let (sparing, alone) = listed(SPARING, others);
    alone.into_iter().for_each(|program| run_alone(root, program, totals));
    run_in_lanes(root, sparing, totals);
    run_in_lanes(root, quiet, totals);
    run_in_lanes(root, sociable, totals);
}

/// Those of the rig that are in a list, in its order, and those that are not.
fn listed<'a>(
    list: &[&str],
    programs: Vec<&'a TestProgram>,
) -> (Vec<&'a TestProgram>, Vec<&'a TestProgram>) {
    let place = |of: &TestProgram| list.iter().position(|name| is_of_rig(of) && *name == of.name);
    let (mut those, others): (Vec<_>, Vec<_>) =
        programs.into_iter().partition(|of| place(of).is_some());
    those.sort_by_key(|program| place(program));
    (those, others)
}

/// Runs a program while no other runs, and shows what it prints as it prints it.
fn run_alone(root: &Path, program: &TestProgram, totals: &mut Totals) {
    let began = Moment::now();
    let first = program.run(threads(program), &[], &mut |line| println!("{line}"));
    add(root, program, first, &began.took(), totals);
}

/// Runs programs so many at a time, and shows what each prints when it has ended.
fn run_in_lanes(root: &Path, programs: Vec<&TestProgram>, totals: &mut Totals) {
    let waiting = Mutex::new(VecDeque::from(programs));
    let totals = Mutex::new(totals);
    let lane = || {
        let mut again = Vec::new();
        loop {
            let next = waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
            let Some(program) = next else { return again };
            let (began, mut said) = (Moment::now(), String::new());
            let first = program.run(threads(program), &[], &mut |line| {
                said.push_str(line);
                said.push('\n');
            });
            let took = began.took();
            let mut totals = totals.lock().unwrap_or_else(PoisonError::into_inner);
            print!("{said}");
            if first.failure.is_none() {
                add(root, program, first, &took, &mut totals);
            } else {
                again.push((program, first, took));
            }
        }
    };
    // Those that failed are run again when nothing is beside them.
    let again = std::thread::scope(|scope| {
        let lanes: Vec<_> = (0..LANES).map(|_| scope.spawn(lane)).collect();
        let ends = lanes.into_iter().map(|lane| lane.join());
        ends.flat_map(|end| end.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect::<Vec<_>>()
    });
    let totals = totals.into_inner().unwrap_or_else(PoisonError::into_inner);
    for (program, first, took) in again {
        add(root, program, first, &took, totals);
    }
}

/// Adds up what came of a program. Tests of real time that failed are run once more, each alone,
/// and are told whatever comes of it: decision 20.
fn add(root: &Path, program: &TestProgram, first: Outcome, took: &Took, totals: &mut Totals) {
    let title = program.title();
    let mut counts = first.counts;
    let mut failure = first.failure;
    let may_repeat = !is_own(root, program) && totals.second_runs.len() < SECOND_RUNS_MAX;
    if failure.is_some() && may_repeat && !first.failed_tests.is_empty() {
        println!("==> {title}: run again: {}", first.failed_tests.join(", "));
        let second = program.run(Some(1), &first.failed_tests, &mut |line| println!("{line}"));
        if second.failure.is_none() && second.counts.passed == counts.failed {
            counts.passed += counts.failed;
            counts.failed = 0;
            totals.second_runs.push(format!("{title}: {}", first.failed_tests.join(", ")));
            failure = None;
        }
    }
    totals.passed += counts.passed;
    totals.failed += counts.failed;
    totals.took(&title, took);
    match failure {
        None => println!("==> {title}: passed ({took})"),
        Some(error) => {
            println!("==> {title}: FAILED ({took}): {error:#}");
            totals.failures.push(format!("{title}: {error:#}"));
        }
    }
}

fn is_own(root: &Path, program: &TestProgram) -> bool {
    !program.folder.starts_with(root.join(REAL))
}

fn is_of_rig(program: &TestProgram) -> bool {
    program.folder.ends_with(RIG)
}

/// How many of its tests run at a time; none: as many as there are CPUs.
fn threads(program: &TestProgram) -> Option<u8> {
    let is_named = |(folder, name, _): &&(&str, &str, u8)| {
        program.folder.ends_with(folder) && program.name == *name
    };
    let patient = PATIENT.iter().find(is_named).map(|(_, _, threads)| *threads);
    patient.or(is_of_rig(program).then_some(1))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// A program whose only test fails for the first so many runs.
    fn failing(root: &Path, folder: &str, times: u32) -> TestProgram {
        let folder = root.join(folder);
        std::fs::create_dir_all(&folder).unwrap();
        let executable = folder.join("program");
        let script = format!(
            "#!/bin/sh\n\
             echo \"$*\" >> runs\n\
             if [ \"$(wc -l < runs)\" -le {times} ]; then\n\
             echo 'test a_test ... FAILED'\n\
             echo 'test result: FAILED. 4 passed; 1 failed; 0 ignored'; exit 101\n\
             fi\n\
             echo 'test result: ok. 1 passed; 0 failed; 0 ignored'\n"
        );
        std::fs::write(&executable, script).unwrap();
        std::fs::set_permissions(&executable, PermissionsExt::from_mode(0o755)).unwrap();
        TestProgram { name: "program".to_owned(), folder, executable }
    }

    fn runs(program: &TestProgram) -> Vec<String> {
        let told = std::fs::read_to_string(program.folder.join("runs")).unwrap();
        told.lines().map(str::to_owned).collect()
    }

    #[test]
    fn a_test_of_real_time_that_fails_is_run_once_more_and_told() {
        let root = tempfile::tempdir().unwrap();
        let mut totals = Totals::default();
        let once = failing(root.path(), "testing/once", 1);
        run_alone(root.path(), &once, &mut totals);
        assert_eq!(runs(&once), ["", "--test-threads=1 --exact a_test"]);
        assert_eq!((totals.passed, totals.failed), (5, 0));
        assert_eq!(totals.second_runs, ["once / program: a_test"]);

        let always = failing(root.path(), "testing/always", 9);
        run_alone(root.path(), &always, &mut totals);
        assert_eq!(runs(&always).len(), 2);
        assert_eq!((totals.passed, totals.failed), (9, 1));
        assert_eq!(totals.failures, ["always / program: a_test"]);
    }

    #[test]
    fn other_tests_fail_at_once_and_so_do_all_when_many_do() {
        let root = tempfile::tempdir().unwrap();
        let mut totals = Totals::default();
        let own = failing(root.path(), "plane/own", 1);
        run_alone(root.path(), &own, &mut totals);
        assert_eq!((runs(&own).len(), totals.failed), (1, 1));
        for nth in 0..=SECOND_RUNS_MAX {
            let program = failing(root.path(), &format!("testing/{nth}"), 1);
            run_alone(root.path(), &program, &mut totals);
        }
        assert_eq!(totals.second_runs.len(), SECOND_RUNS_MAX);
        assert_eq!(totals.failures.len(), 2);
    }

    #[test]
    fn sociable_programs_run_beside_each_other_and_again_alone() {
        let root = tempfile::tempdir().unwrap();
        let mut totals = Totals::default();
        let folder = |nth: u32| format!("testing/{nth}/testing/rig");
        let mut programs: Vec<_> =
            (0..3).map(|nth| failing(root.path(), &folder(nth), nth)).collect();
        let names = SOCIABLE.iter().map(|name| (*name).to_owned());
        programs.iter_mut().zip(names).for_each(|(program, name)| program.name = name);
        run_real(root.path(), &programs, &mut totals, true);
        assert_eq!(runs(&programs[0]), ["--test-threads=1"]);
        assert_eq!(runs(&programs[1]).len(), 2);
        assert_eq!(totals.second_runs.len(), 1);
        assert_eq!(totals.failures, [format!("rig / {}: a_test", SOCIABLE[2])]);
        run_real(root.path(), &programs, &mut totals, false);
        assert_eq!(runs(&programs[0]).len(), 1);
    }

    #[test]
    fn each_that_is_named_is_there() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        for name in [SOCIABLE, QUIET, SPARING].concat() {
            assert!(here.join(RIG).join(format!("tests/{name}.rs")).is_file(), "{name}");
        }
    }
}
