//! Results of a case, and their comparison with published values.

use std::collections::BTreeMap;

use serde::Serialize;
use suimon_sim_kernel::Figure;

use crate::host::plan::Plan;
use crate::host::spec::{By, Expect, HostScenario, Measure};
use crate::host::totals::{Sum, VmSum};

/// Results of a case of the scenario.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Report {
    pub(crate) case: String,
    pub(crate) vms: Vec<VmsReport>,
    pub(crate) cpu_percent: f64,
    /// CPU time per request in µs, summed over all CPUs.
    pub(crate) cpu_us: f64,
    pub(crate) watts: f64,
    pub(crate) score: f64,
    /// Frames per second between VMs that left the host.
    pub(crate) left: f64,
    /// Broadcasts of VMs per second that left the host.
    pub(crate) left_broadcasts: f64,
}

/// Results of the VMs of a kind.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct VmsReport {
    pub(crate) name: String,
    pub(crate) count: usize,
    /// Requests per second of all VMs of the kind together.
    pub(crate) rate: f64,
    pub(crate) mbit_s: f64,
    /// CPU time of the VM per request in µs.
    pub(crate) vm_us: f64,
    /// CPU time of the host per request of the VM, in µs.
    pub(crate) host_us: f64,
    pub(crate) modules_us: BTreeMap<String, f64>,
}

/// Summarises the totals of a case.
pub(crate) fn report(plan: &Plan<'_>, sum: &Sum) -> Report {
    let seconds = plan.scenario.measure_ms as f64 / 1e3;
    let busy = sum.busy_ns.iter().sum::<u64>() as f64;
    let all_ns = seconds * 1e9 * f64::from(plan.machine.logical_cpus);
    let requests = sum.vms.iter().map(|vm_sum| vm_sum.done).sum::<u64>().max(1) as f64;
    let (mut score, mut scored) = (0.0, 0.0);
    let mut vms = Vec::new();
    for spec in &plan.scenario.vms {
        let kind_sums = plan.vms.iter().zip(&sum.vms).filter(|(vm, _)| vm.spec.name == spec.name);
        let kind_sums: Vec<&VmSum> = kind_sums.map(|(_, sum)| sum).collect();
        let total =
            |of_vm: fn(&VmSum) -> u64| kind_sums.iter().map(|vm| of_vm(vm)).sum::<u64>() as f64;
        let count = total(|vm_sum| vm_sum.done);
        let us_per_request = |ns: f64| ns / 1e3 / count.max(1.0);
        let rate = count / seconds;
        if let Some(reference) = spec.reference {
            score += rate / reference;
            scored += 1.0;
        }
        let module = |(number, name): (usize, &String)| {
            let ns = kind_sums.iter().map(|vm| vm.module_ns[number]).sum::<u64>();
            (name.clone(), us_per_request(ns as f64))
        };
        let modules =
            plan.modules.0.iter().enumerate().map(module).filter(|(_, module_us)| *module_us > 0.0);
        vms.push(VmsReport {
            name: spec.name.clone(),
            count: kind_sums.len(),
            rate,
            mbit_s: total(|vm_sum| vm_sum.bytes) * 8.0 / 1e6 / seconds,
            vm_us: us_per_request(total(|vm_sum| vm_sum.vm_ns)),
            host_us: us_per_request(total(|vm_sum| vm_sum.host_ns)),
            modules_us: modules.collect(),
        });
    }
    Report {
        case: plan.case.name.clone(),
        vms: vms.into_iter().filter(|vms_report| vms_report.count > 0).collect(),
        cpu_percent: busy * 100.0 / all_ns,
        cpu_us: busy / 1e3 / requests,
        watts: sum.energy as f64 / 1e12 / seconds,
        score: if scored > 0.0 { score / scored } else { 0.0 },
        left: sum.frames_out as f64 / seconds,
        left_broadcasts: sum.broadcasts_out as f64 / seconds,
    }
}

impl Report {
    fn measure(&self, measure: Measure, name: &str) -> f64 {
        let vms = || self.vms.iter().filter(|vms| name.is_empty() || vms.name == name);
        let mean = |weighted_mean: fn(&VmsReport) -> f64| {
            let rate = vms().map(|vms| vms.rate).sum::<f64>();
            vms().map(|vms| weighted_mean(vms) * vms.rate).sum::<f64>()
                / rate.max(f64::MIN_POSITIVE)
        };
        match measure {
            Measure::Mbit => vms().map(|vms| vms.mbit_s).sum(),
            Measure::Rate => vms().map(|vms| vms.rate).sum(),
            Measure::Cpu => self.cpu_percent,
            Measure::CpuEach => self.cpu_us,
            Measure::HostEach => mean(|vms| vms.host_us),
            Measure::VmEach => mean(|vms| vms.vm_us),
            Measure::Module => {
                let rates =
                    self.vms.iter().map(|vms| vms.modules_us.get(name).unwrap_or(&0.0) * vms.rate);
                let rate = self.vms.iter().map(|vms| vms.rate).sum::<f64>();
                rates.sum::<f64>() / rate.max(f64::MIN_POSITIVE)
            }
            Measure::Watts => self.watts,
            Measure::Score => self.score,
            Measure::Left => self.left,
            Measure::LeftBroadcasts => self.left_broadcasts,
        }
    }
}

/// Returns the published figures with the simulated results.
pub(crate) fn figures(scenario: &HostScenario, reports: &[Report]) -> Vec<Figure> {
    let mut figures = Vec::new();
    for (case, report) in scenario.case.iter().zip(reports) {
        for figure in &case.figure {
            let expect = &figure.expect;
            let reference = expect.against.as_ref();
            let other = reference
                .and_then(|name| reports.iter().find(|other_report| other_report.case == *name));
            let (text, value) = match reference.filter(|_| expect.by == By::Best) {
                Some(names) => best_case(expect, report, names, reports),
                None => compare(expect, report, other),
            };
            figures.push(Figure {
                step: case.name.clone(),
                of: expectation_text(expect),
                published: figure.published.clone(),
                ours: text,
                agrees: value >= expect.from && value <= expect.to,
                used: figure.used,
            });
        }
    }
    figures
}

fn expectation_text(expect: &Expect) -> String {
    match (expect.against.as_ref().filter(|_| expect.by != By::Best), expect.what.as_str()) {
        (None, "") => "all".to_owned(),
        (None, subject) => subject.to_owned(),
        (Some(reference), "") => format!("relative to {reference}"),
        (Some(reference), subject) => format!("{subject}, relative to {reference}"),
    }
}

/// Returns the result as text and as the number that the expectation limits.
fn compare(expect: &Expect, report: &Report, other: Option<&Report>) -> (String, f64) {
    let value = report.measure(expect.of, &expect.what);
    let unit = match expect.of {
        Measure::Mbit => "Mbit/s",
        Measure::Rate | Measure::Left | Measure::LeftBroadcasts => "per second",
        Measure::Cpu => "% of all CPUs",
        Measure::CpuEach | Measure::HostEach | Measure::VmEach | Measure::Module => {
            "µs per request"
        }
        Measure::Watts => "W",
        Measure::Score => "points",
    };
    let digits = match expect.of {
        Measure::Mbit | Measure::Rate | Measure::Left | Measure::LeftBroadcasts => 0,
        Measure::Cpu | Measure::Watts => 1,
        _ => 2,
    };
    let Some(other) = other.map(|report| report.measure(expect.of, &expect.what)) else {
        return (format!("{value:.digits$} {unit}"), value);
    };
    let percent = (value / other.max(f64::MIN_POSITIVE) - 1.0) * 100.0;
    let values = format!("{value:.digits$} and {other:.digits$} {unit}");
    match expect.by {
        By::Times => (format!("{:.2} times: {values}", value / other), value / other),
        By::TimesLess if value > 0.0 => {
            (format!("{:.0} times less: {values}", other / value), other / value)
        }
        By::TimesLess => (format!("nothing: {values}"), f64::INFINITY),
        By::PercentMore => (format!("{percent:.1} % more: {values}"), percent),
        By::PercentLess => (format!("{:.1} % less: {values}", positive(-percent)), -percent),
        By::More | By::Best => (format!("{:.1} {unit} more", value - other), value - other),
    }
}

/// Returns a text about the case with the best value among those whose names begin with `names`,
/// and the relative difference of this case from it (0 or negative).
fn best_case(expect: &Expect, report: &Report, names: &str, reports: &[Report]) -> (String, f64) {
    let value = |candidate: &Report| candidate.measure(expect.of, &expect.what);
    let of_name = reports.iter().filter(|report| report.case.starts_with(names));
    let best =
        of_name.max_by(|first, second| value(first).total_cmp(&value(second))).unwrap_or(report);
    let text = format!("best: {:.2} with {}", value(best), best.case);
    (text, value(report) / value(best).max(f64::MIN_POSITIVE) - 1.0)
}

/// Returns 0 for values that are printed as -0.0.
fn positive(percent: f64) -> f64 {
    if percent.abs() < 0.05 { 0.0 } else { percent }
}
