//! Every plan of the lab completes at scale `quick`, and properties that do not depend on the
//! machine hold. The measured values are for `make lab`.

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};
use suimon_rig::{Rig, program, run, run_any};

/// Time limit of a plan. Its own durations are at most 120 s; a loaded machine needs longer.
const PLAN_LIMIT: Duration = Duration::from_secs(1200);

/// Plan that is run with CPU profiles.
const PROFILED: &str = "offload-ftp";

/// Runs a plan at scale `quick`. Returns its record, or the reason of a failure.
fn quick(results: &str, plan: &str) -> Result<Value, String> {
    let lab = program("suimon-lab").unwrap();
    let mut arguments =
        vec![&*lab, "run", plan, "--scale", "quick", "--json", "--results", results];
    arguments.extend((plan == PROFILED).then_some("--profile"));
    let output = run_any(&arguments, PLAN_LIMIT).map_err(|error| format!("{error:#}"))?;
    let text = format!("{}{}", output.stderr, output.stdout);
    if !output.is_ok() {
        return Err(text);
    }
    let report: Value = serde_json::from_str(&output.stdout).map_err(|_| text.clone())?;
    let id = report["runs"][0].as_str().ok_or(text)?;
    let text = fs::read_to_string(format!("{results}/{id}/run.json")).unwrap();
    let run: Value = serde_json::from_str(&text).unwrap();
    for part in run["parts"].as_array().unwrap() {
        if let Some(failure) = part["failure"].as_str() {
            return Err(format!("{}: {failure}", part["case"]));
        }
        println!("{plan} {}: {:.1} s: {}", part["case"], part["took_s"], part["values"]);
    }
    Ok(run)
}

/// Returns a measured value of a case's only repetition.
fn value(run: &Value, case: &str, measure: &str) -> Option<f64> {
    let part = run["parts"].as_array()?.iter().find(|part| part["case"] == case)?;
    part["values"][measure].as_f64()
}

/// The plan that the fast tier runs.
const FAST: &str = "qos-host";

#[test]
fn qos_host() {
    runs_quick(FAST);
}

fn shipped() -> Vec<Value> {
    let output = run(&[&*program("suimon-lab").unwrap(), "list", "--json"]).unwrap();
    let plans: Value = serde_json::from_str(&output).unwrap();
    plans.as_array().unwrap().clone()
}

#[test]
fn every_shipped_plan_has_a_test_here() {
    let shipped: Vec<String> =
        shipped().iter().map(|plan| plan["id"].as_str().unwrap().to_owned()).collect();
    let tested: Vec<&str> = shipped
        .iter()
        .map(String::as_str)
        .filter(|plan| *plan == FAST || full::TESTED.contains(plan))
        .collect();
    assert_eq!(shipped, tested);
    assert_eq!(tested.len(), full::TESTED.len() + 1);
}

fn runs_quick(id: &str) {
    let rig = Rig::new().unwrap();
    let plans = shipped();
    let plan = plans.iter().find(|plan| plan["id"] == id).unwrap();
    // All programs that plans need are installed with the project; only the machine itself may lack
    // something.
    let scales = plan["scales"].as_array().unwrap();
    let at_quick = scales.iter().find(|scale| scale["scale"] == "quick").unwrap();
    assert_eq!(at_quick["missing"], json!([]));
    let results = rig.path("results");
    quick(&results, id).and_then(|run| check(id, &run)).unwrap();
    let report = fs::read_dir(&results)
        .unwrap()
        .any(|folder| folder.unwrap().path().join("report.html").is_file());
    assert!(report, "{id} has no report");
    assert!(!run(&["losetup", "--list"]).unwrap().contains(&*rig.path("")));
}

/// Checks properties that hold on any machine under any load.
fn check(plan: &str, run: &Value) -> Result<(), String> {
    match plan {
        "disk-io" => check_disk_io(run),
        PROFILED => check_profile(run),
        "power-plan" => check_power_plan(run),
        "qos-host" => check_qos_host(run),
        "qos-cluster-min" => check_qos_cluster_min(run),
        "sriov-host-cpu" => check_sriov(run),
        _ => Ok(()),
    }
}

fn expect(is_met: bool, condition: &str, values: impl std::fmt::Debug) -> Result<(), String> {
    if is_met { Ok(()) } else { Err(format!("{condition}: {values:?}")) }
}

/// FTP traffic uses the kernel's TCP and Suimon's switch on any machine.
fn check_profile(run: &Value) -> Result<(), String> {
    for part in run["parts"].as_array().unwrap() {
        let modules = part["profile"]["modules"].as_array();
        let modules = modules.ok_or_else(|| format!("no profile: {}", part["notes"]))?;
        let cpu_s = |name: &str| {
            let module = modules.iter().find(|module| module["name"] == name);
            module.map_or(0.0, |module| module["cpu_seconds"].as_f64().unwrap())
        };
        let both = ["suimond", "kernel: TCP"].map(cpu_s);
        expect(both.iter().all(|seconds| *seconds > 0.0), "CPU time by module", modules)?;
    }
    Ok(())
}

fn check_qos_host(run: &Value) -> Result<(), String> {
    // Load delays the readings of the counters, so no upper bound holds here. That maximums hold is
    // tested with counters and their reading times (`disks/served.rs`).
    let highest = value(run, "steps", "highest-2-VM01-05").unwrap_or(0.0);
    println!("highest 5 s of a maximum: {highest} %");
    expect(highest > 0.0, "highest 5 s of a maximum", highest)?;
    let verdict = value(run, "steps", "met-3-VM06-10");
    expect(verdict.is_some(), "a minimum is evaluated", verdict)?;
    let series = run["parts"][0]["series"].as_array().unwrap();
    let of_disks = |group: &str| series.iter().filter(|entry| entry["group"] == group).count();
    expect(of_disks("disk") == 4 && of_disks("entitled") == 4, "a series of each disk", ())?;
    let fio = series.iter().find(|entry| entry["group"] == "fio");
    let seconds = fio.map_or(0, |entry| entry["points"].as_array().unwrap().len());
    expect(seconds >= 1, "seconds measured by fio", seconds)
}

/// Minimums that exceed the capacity of both nodes are rejected on any machine.
fn check_qos_cluster_min(run: &Value) -> Result<(), String> {
    let refused = value(run, "steps", "refused-4");
    expect(refused == Some(1.0), "an excessive minimum is rejected", refused)
}

fn check_disk_io(run: &Value) -> Result<(), String> {
    let mut cases = 0;
    for path in ["engine", "vhost-user", "vhost-user-waiting", "nbd"] {
        for disk in ["raw", "vhdx-dynamic", "pass-through"] {
            let case = format!("database+{path}+{disk}.4");
            let measured = |measure: &str| value(run, &case, measure).unwrap_or(0.0);
            expect(
                measured("rate") > 0.0 && measured("native") > 0.0,
                &case,
                (measured("rate"), measured("native")),
            )?;
            cases += 1;
        }
    }
    expect(run["cases"].as_array().unwrap().len() == cases, "cases", cases)
}

fn check_power_plan(run: &Value) -> Result<(), String> {
    for case in ["power-saver", "balanced", "high-performance"] {
        for load in ["tcp", "vhost-user", "nbd"] {
            for measure in ["rate", "cpu-each"] {
                let result = value(run, case, &format!("{load}-{measure}"));
                expect(result.is_some_and(|result| result > 0.0), case, (load, measure, result))?;
            }
        }
        // Power is reported, or the reason why it cannot be measured.
        let parts = run["parts"].as_array().unwrap();
        let notes = parts.iter().find(|part| part["case"] == case).map(|part| &part["notes"]);
        let is_lacking = notes.is_some_and(|notes| notes.to_string().contains("energy: "));
        let watts = value(run, case, "nothing-watts");
        expect(watts.is_none() == is_lacking, "watts, or why there are none", (watts, notes))?;
    }
    Ok(())
}

/// The adapter and all CPUs are emulated, so only the CPU time of the daemon's workers is compared.
fn check_sriov(run: &Value) -> Result<(), String> {
    for direction in ["sends", "receives"] {
        let processors = |path: &str| value(run, &format!("{direction}+{path}"), "processors");
        let (switch, vf) =
            (processors("switch").unwrap_or(0.0), processors("vf").unwrap_or(f64::INFINITY));
        // A VF costs the workers at most a tenth of what the switch costs.
        expect(vf * 10.0 < switch, direction, (switch, vf))?;
    }
    Ok(())
}

mod full {
    /// Defines a test for each plan, so that a failure does not hide others.
    macro_rules! quick_plans {
        ($($test:ident $plan:literal)*) => {
            pub(super) const TESTED: &[&str] = &[$($plan),*];
            $(
                #[test]
                fn $test() {
                    super::runs_quick($plan);
                }
            )*
        };
    }

    quick_plans! {
        vmq_teaming "vmq-teaming"
        vmq_max_processors "vmq-max-processors"
        offload_ftp "offload-ftp"
        sriov_host_cpu "sriov-host-cpu"
        cpu_memory "cpu-memory"
        disk_io "disk-io"
        oltp "oltp"
        net_throughput "net-throughput"
        net_vm_to_vm "net-vm-to-vm"
        web "web"
        tiles "tiles"
        power_plan "power-plan"
        qos_cluster_min "qos-cluster-min"
        qos_cluster_max "qos-cluster-max"
    }
}
