//! JVM that processes orders of warehouses: `OrderEntry.java` with Debian's H2 database.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use suimon_rig::{Namespace, Process, Rig, run};

use super::vcpus::Vcpus;
use crate::environment::Environment;
use crate::requirement::{Requirement, programs};

const SOURCE: &str = include_str!("OrderEntry.java");
const H2: &str = "/usr/share/java/h2.jar";

/// Time limit for the JVM to exit after the measurement.
const END_LIMIT: Duration = Duration::from_secs(20);

/// Compiled program `OrderEntry.java`.
pub(crate) struct OrderEntry {
    class_path: String,
}

/// Parameters of the load.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OrderLoad {
    /// Number of threads, each with its own warehouse.
    pub(crate) warehouses: u32,
    pub(crate) warm_up_s: u64,
    pub(crate) measure_s: u64,
    pub(crate) heap_mib: u32,
    /// True if the heap may use huge pages.
    pub(crate) may_use_huge_pages: bool,
}

/// Orders completed under the load.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct OrderResult {
    /// Pairs of second since the start of the measurement, and operations per second in it.
    pub(crate) rate_by_second: Vec<(f64, f64)>,
    /// Mean rate of operations per second.
    pub(crate) operations_per_s: f64,
    /// Share of time in garbage collection pauses, in percent.
    pub(crate) gc_paused_percent: f64,
}

#[derive(Deserialize)]
struct Line {
    at_s: Option<f64>,
    per_s: f64,
    pauses_ms: Option<f64>,
    seconds: Option<f64>,
}

impl OrderEntry {
    pub(crate) fn requirements() -> Vec<Requirement> {
        [
            programs(&[("javac", "default-jdk-headless"), ("java", "default-jdk-headless")]),
            vec![Requirement::File { path: H2, package: "libh2-java" }],
            programs(&[("taskset", "util-linux")]),
        ]
        .concat()
    }

    pub(crate) fn compile(rig: &Rig) -> Result<Self> {
        let folder = rig.path(&rig.unique("classes"));
        fs::create_dir(&folder)?;
        let source = format!("{folder}/OrderEntry.java");
        fs::write(&source, SOURCE)?;
        run(&["javac", "-cp", H2, "-d", &folder, &source])?;
        Ok(Self { class_path: format!("{H2}:{folder}") })
    }

    /// Starts the program. [`OrderEntry::finish`] returns its result.
    pub(crate) fn start(&self, rig: &Rig, vcpus: &Vcpus, load: OrderLoad) -> Result<Process> {
        let command = self.arguments(load);
        let command: Vec<&str> = command.iter().map(String::as_str).collect();
        Process::start(rig, "order-entry", &vcpus.pinned_command(&command))
    }

    /// Starts the program on the CPUs of a namespace guest.
    pub(crate) fn start_in(
        &self,
        rig: &Rig,
        guest: &Namespace,
        vcpus: &Vcpus,
        load: OrderLoad,
    ) -> Result<Process> {
        let command = self.arguments(load);
        let command: Vec<&str> = command.iter().map(String::as_str).collect();
        guest.start(rig, "order-entry", &vcpus.pinned_command(&command))
    }

    fn arguments(&self, load: OrderLoad) -> Vec<String> {
        let OrderLoad {
            warehouses,
            warm_up_s,
            measure_s,
            heap_mib,
            may_use_huge_pages: has_huge_pages,
        } = load;
        let sign = if has_huge_pages { '+' } else { '-' };
        vec![
            "java".to_owned(),
            format!("-Xms{heap_mib}m"),
            format!("-Xmx{heap_mib}m"),
            format!("-XX:{sign}UseTransparentHugePages"),
            "-cp".to_owned(),
            self.class_path.clone(),
            "OrderEntry".to_owned(),
            warehouses.to_string(),
            warm_up_s.to_string(),
            measure_s.to_string(),
        ]
    }

    /// Waits for the end of the measurement and returns its result.
    pub(crate) fn finish(
        process: &mut Process,
        load: OrderLoad,
        environment: &Environment<'_>,
    ) -> Result<OrderResult> {
        let limit = Duration::from_secs(load.warm_up_s + load.measure_s) + END_LIMIT;
        let status = environment.wait_for(process, limit).context("the Java load failed")?;
        ensure!(status.success(), "the Java load ended ({status}): {}", process.last_words());
        read(&process.log())
    }
}

fn read(output: &str) -> Result<OrderResult> {
    let lines: Vec<Line> =
        output.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let seconds = lines.iter().filter_map(|line| Some((line.at_s?, line.per_s))).collect();
    let last = lines.iter().find(|line| line.seconds.is_some());
    let last = last.with_context(|| format!("the Java load reported no result: {output}"))?;
    let paused = last.pauses_ms.unwrap_or(0.0) / 10.0 / last.seconds.unwrap_or(1.0);
    Ok(OrderResult {
        rate_by_second: seconds,
        operations_per_s: last.per_s,
        gc_paused_percent: paused,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_output_of_the_program_is_parsed() {
        let output = "OpenJDK 64-Bit Server VM warning: x\n{\"at_s\":1.001,\"per_s\":7185.5}\n\
                    {\"at_s\":2.002,\"per_s\":9271.2}\n\
                    {\"per_s\":8228.4,\"pauses_ms\":453,\"collections\":29,\"seconds\":2.000}\n";
        let result = read(output).unwrap();
        assert_eq!(result.rate_by_second, [(1.001, 7185.5), (2.002, 9271.2)]);
        assert_eq!((result.operations_per_s, result.gc_paused_percent), (8228.4, 22.65));
        assert!(read("Error: no class").unwrap_err().to_string().contains("no class"));
    }
}
