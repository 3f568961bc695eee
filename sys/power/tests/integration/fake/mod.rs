//! Simulated sysfs in a folder.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

pub(crate) struct FakeSysfs(TempDir);

impl FakeSysfs {
    pub(crate) fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    pub(crate) fn root(&self) -> &Path {
        self.0.path()
    }

    /// Creates a file that ends with a line break, as in sysfs.
    pub(crate) fn put(&self, file: &str, text: &str) {
        let path = self.root().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, format!("{text}\n")).unwrap();
    }

    /// Creates CPUs without idle states and frequencies.
    pub(crate) fn cpus(&self, count: u16) {
        self.put("devices/system/cpu/online", &format!("0-{}", count - 1));
        for cpu in 0..count {
            self.put(&format!("devices/system/cpu/cpu{cpu}/uevent"), "");
        }
    }

    fn policy(&self, policy: u16, files: &[(&str, &str)]) {
        for (file, text) in files {
            self.put(&format!("devices/system/cpu/cpufreq/policy{policy}/{file}"), text);
        }
    }

    /// Returns all files with their trimmed contents.
    pub(crate) fn contents(&self) -> BTreeMap<PathBuf, String> {
        let mut contents = BTreeMap::new();
        collect(self.root(), &mut contents);
        contents
    }
}

fn collect(folder: &Path, contents: &mut BTreeMap<PathBuf, String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            collect(&entry.path(), contents);
        } else {
            let text = std::fs::read_to_string(entry.path()).unwrap();
            contents.insert(entry.path(), text.trim().to_owned());
        }
    }
}

/// Creates two CPUs with frequencies by ACPI.
pub(crate) fn acpi_cpufreq(sysfs: &FakeSysfs) {
    sysfs.cpus(2);
    sysfs.put("devices/system/cpu/cpufreq/boost", "1");
    for cpu in 0..2 {
        sysfs.policy(
            cpu,
            &[
                ("affected_cpus", &cpu.to_string()),
                ("scaling_driver", "acpi-cpufreq"),
                ("scaling_available_governors", "conservative ondemand performance schedutil"),
                ("scaling_governor", "ondemand"),
                ("cpuinfo_min_freq", "1500000"),
                ("cpuinfo_max_freq", "3400000"),
                ("scaling_min_freq", "2200000"),
                ("scaling_max_freq", "3400000"),
            ],
        );
        let states = [("POLL", "0"), ("C1", "1"), ("C2", "400")];
        for (state, (name, latency)) in states.into_iter().enumerate() {
            let folder = format!("devices/system/cpu/cpu{cpu}/cpuidle/state{state}");
            sysfs.put(&format!("{folder}/name"), name);
            sysfs.put(&format!("{folder}/latency"), latency);
            sysfs.put(&format!("{folder}/disable"), "0");
        }
    }
}

/// Creates one policy for both threads of a core, in active mode.
pub(crate) fn intel_pstate(sysfs: &FakeSysfs) {
    sysfs.cpus(2);
    sysfs.put("devices/system/cpu/intel_pstate/no_turbo", "0");
    sysfs.policy(
        0,
        &[
            ("affected_cpus", "0 1"),
            ("scaling_driver", "intel_pstate"),
            ("scaling_available_governors", "performance powersave"),
            ("scaling_governor", "powersave"),
            ("energy_performance_preference", "balance_power"),
            (
                "energy_performance_available_preferences",
                "default performance balance_performance balance_power power",
            ),
            ("cpuinfo_min_freq", "800000"),
            ("cpuinfo_max_freq", "4200000"),
            ("scaling_min_freq", "800000"),
            ("scaling_max_freq", "3000000"),
        ],
    );
}

/// Creates a policy for each CPU, each with a separate turbo setting.
pub(crate) fn amd_pstate_epp(sysfs: &FakeSysfs) {
    sysfs.cpus(2);
    for cpu in 0..2 {
        sysfs.policy(
            cpu,
            &[
                ("affected_cpus", &cpu.to_string()),
                ("scaling_driver", "amd-pstate-epp"),
                ("scaling_available_governors", "performance powersave"),
                ("scaling_governor", "performance"),
                ("energy_performance_preference", "performance"),
                (
                    "energy_performance_available_preferences",
                    "default performance balance_performance balance_power power",
                ),
                ("cpuinfo_min_freq", "400000"),
                ("cpuinfo_max_freq", "5000000"),
                ("scaling_min_freq", "400000"),
                ("scaling_max_freq", "5000000"),
                ("boost", "1"),
            ],
        );
    }
}
