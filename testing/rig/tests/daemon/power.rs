//! Power plans of a running, confined daemon, with a simulated sysfs: in effect, after the daemon's
//! end or crash, and on CPUs without support.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use suimon_rig::{Daemon, DaemonOptions, Rig, run_any, wait_until};

/// Deadline of conditions and commands that take less than a second on an idle machine.
const LIMIT: Duration = Duration::from_secs(90);

const HOST: &str = "[power]\nplan = \"high-performance\"\n";

/// Simulated sysfs in a folder: two CPUs with `acpi-cpufreq` and one package with an energy
/// counter.
struct Sysfs(PathBuf);

impl Sysfs {
    fn new(rig: &Rig) -> Self {
        let sysfs = Self(PathBuf::from(rig.path("sys")));
        sysfs.put("devices/system/cpu/online", "0-1");
        sysfs.put("devices/system/cpu/cpufreq/boost", "0");
        for cpu in 0..2 {
            let files = [
                ("affected_cpus", cpu.to_string()),
                ("scaling_driver", "acpi-cpufreq".to_owned()),
                ("scaling_available_governors", "ondemand performance schedutil".to_owned()),
                ("scaling_governor", "ondemand".to_owned()),
                ("cpuinfo_min_freq", "1500000".to_owned()),
                ("cpuinfo_max_freq", "3400000".to_owned()),
                ("scaling_min_freq", "1500000".to_owned()),
                ("scaling_max_freq", "3400000".to_owned()),
            ];
            for (file, text) in files {
                sysfs.put(&format!("devices/system/cpu/cpufreq/policy{cpu}/{file}"), &text);
            }
            for (state, name, latency) in [(0, "POLL", 0), (1, "C6", 130)] {
                let folder = format!("devices/system/cpu/cpu{cpu}/cpuidle/state{state}");
                sysfs.put(&format!("{folder}/name"), name);
                sysfs.put(&format!("{folder}/latency"), &latency.to_string());
                sysfs.put(&format!("{folder}/disable"), "0");
            }
        }
        let zone = "class/powercap/intel-rapl:0";
        sysfs.put(&format!("{zone}/name"), "package-0");
        sysfs.put(&format!("{zone}/energy_uj"), "1000000");
        sysfs.put(&format!("{zone}/max_energy_range_uj"), "262143328850");
        sysfs
    }

    fn put(&self, file: &str, text: &str) {
        let path = self.0.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{text}\n")).unwrap();
    }

    fn text(&self, file: &str) -> String {
        fs::read_to_string(self.0.join(file)).unwrap().trim().to_owned()
    }

    /// Returns the settings that a plan changes: governors, turbo, lowest frequency, the deep idle
    /// state.
    fn settings(&self) -> Vec<String> {
        let files = [
            "cpufreq/policy0/scaling_governor",
            "cpufreq/policy1/scaling_governor",
            "cpufreq/boost",
            "cpufreq/policy0/scaling_min_freq",
            "cpu1/cpuidle/state1/disable",
        ];
        files.iter().map(|file| self.text(&format!("devices/system/cpu/{file}"))).collect()
    }

    fn options(&self) -> DaemonOptions {
        let arguments = vec!["--sysfs".to_owned(), self.0.display().to_string()];
        DaemonOptions { arguments, ..DaemonOptions::default() }
    }
}

const BEFORE: [&str; 5] = ["ondemand", "ondemand", "0", "1500000", "0"];
const HIGH: [&str; 5] = ["performance", "performance", "1", "3400000", "0"];

#[test]
fn a_plan_is_put_back_by_the_daemons_end_by_the_next_one_and_by_the_service_manager() {
    let rig = Rig::new().unwrap();
    let sysfs = Sysfs::new(&rig);
    let mut daemon = Daemon::start_with(&rig, HOST, &sysfs.options()).unwrap();
    wait_until("the plan", LIMIT, || Ok(sysfs.settings() == HIGH)).unwrap();
    let status = daemon.json(&["power", "show"]).unwrap();
    assert_eq!(status["effect"], "full", "{status}");
    assert_eq!(status["data_plane"]["poll_us"], 200);

    // After a crash: the next daemon restores the settings from before the first one.
    daemon.restart(&rig).unwrap();
    assert_eq!(sysfs.settings(), HIGH);
    daemon.ok(&["power", "unset"]).unwrap();
    assert_eq!(sysfs.settings(), BEFORE);

    // After a crash without another daemon: the service manager's command restores the settings.
    daemon
        .ok(&["power", "set", "custom", "governor=performance", "idle_latency_us_max=10"])
        .unwrap();
    assert_eq!(sysfs.settings(), ["performance", "performance", "0", "1500000", "1"]);
    let restore = [
        suimon_rig::program("suimond").unwrap(),
        "--restore-power".to_owned(),
        "--state-dir".to_owned(),
        daemon.path("state"),
        "--sysfs".to_owned(),
        sysfs.0.display().to_string(),
    ];
    let while_it_runs = run_any(&restore, LIMIT).unwrap();
    assert!(!while_it_runs.is_ok() && while_it_runs.stderr.contains("daemon"), "{while_it_runs:?}");
    daemon.kill();
    let restored = run_any(&restore, LIMIT).unwrap();
    assert!(
        restored.is_ok() && restored.stdout.contains("CPU settings restored: 4"),
        "{restored:?}"
    );
    assert_eq!(sysfs.settings(), BEFORE);

    // After an orderly stop.
    daemon.restart(&rig).unwrap();
    wait_until("the plan again", LIMIT, || Ok(sysfs.settings()[0] == "performance")).unwrap();
    assert!(daemon.stop().unwrap().success());
    assert_eq!(sysfs.settings(), BEFORE);
}

#[test]
fn changes_by_other_programs_are_kept_and_reported_and_watts_are_shown() {
    let rig = Rig::new().unwrap();
    let sysfs = Sysfs::new(&rig);
    let daemon = Daemon::start_with(&rig, HOST, &sysfs.options()).unwrap();
    wait_until("the plan", LIMIT, || Ok(sysfs.settings() == HIGH)).unwrap();
    sysfs.put("devices/system/cpu/cpufreq/policy1/scaling_governor", "schedutil");
    let output = daemon.ok(&["power", "show"]).unwrap();
    assert!(output.contains("changed by another program"), "{output}");
    daemon.ok(&["power", "unset"]).unwrap();
    assert_eq!(sysfs.settings(), ["ondemand", "schedutil", "0", "1500000", "0"]);
    let events = daemon.ok(&["event", "list"]).unwrap();
    assert!(events.contains("8004") && events.contains("8003"), "{events}");

    let counter = sysfs.0.join("class/powercap/intel-rapl:0/energy_uj");
    // The counter is late if this thread is not scheduled, so that a single reading may have any
    // value. Of several readings one is correct, unless the daemon's computation is wrong.
    let mut readings = Vec::new();
    let right = std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            wait_until("about 42 W", LIMIT, || {
                let top = daemon.json(&["top", "--once", "--interval", "1000"])?;
                let milliwatts = top["power"]["milliwatts"].as_u64().unwrap();
                readings.push(milliwatts);
                Ok((35_000..=49_000).contains(&milliwatts))
            })
        });
        count_42_watts(&counter, || watcher.is_finished());
        watcher.join().unwrap()
    });
    right.unwrap_or_else(|error| panic!("{error:#}: {readings:?} mW"));
    assert!(daemon.ok(&["top", "--once"]).unwrap().contains("WATTS"));
}

/// Increments the counter at 42 W until `is_enough` returns true.
fn count_42_watts(counter: &Path, is_enough: impl Fn() -> bool) {
    let started = Instant::now();
    while !is_enough() {
        let uj = 1_000_000 + 42 * started.elapsed().as_micros();
        // The file is replaced atomically, so that the daemon never reads half of it.
        let new_file = counter.with_extension("new");
        fs::write(&new_file, format!("{uj}\n")).unwrap();
        fs::rename(&new_file, counter).unwrap();
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Uses this machine's CPUs. If they have a cpufreq driver, all settings are restored.
#[test]
fn settings_of_this_machines_cpus_are_in_effect_or_have_a_reason() {
    let rig = Rig::new().unwrap();
    let mut daemon = Daemon::start(&rig, "").unwrap();
    let before = daemon.json(&["power", "show"]).unwrap();
    let preview = daemon.ok(&["power", "set", "balanced", "--dry-run"]).unwrap();
    assert!(preview.contains("+ power create"), "{preview}");
    daemon.ok(&["power", "set", "custom", "idle_latency_us_max=0", "poll_us=0"]).unwrap();
    let status = daemon.json(&["power", "show"]).unwrap();
    println!("{}", daemon.ok(&["power", "show"]).unwrap());
    for setting in status["settings"].as_array().unwrap() {
        let is_said = setting["in_effect"] == true || setting["reason"].is_string();
        assert!(is_said, "{setting}");
    }
    assert!(daemon.stop().unwrap().success());
    daemon.restart(&rig).unwrap();
    daemon.ok(&["power", "unset"]).unwrap();
    assert_eq!(daemon.json(&["power", "show"]).unwrap()["cpus"], before["cpus"]);
    let no_plan = daemon.cli(&["power", "set", "fast"]).unwrap();
    assert!(!no_plan.is_ok() && no_plan.stderr.contains("power-saver"), "{no_plan:?}");
    let answer = daemon.http("PUT", "/1.0/power", Some(r#"{"plan": "balanced", "poll_us": -1}"#));
    let answer = answer.unwrap();
    assert_eq!((answer.status, answer.json["errors"][0]["field"].as_str()), (422, Some("poll_us")));
}
