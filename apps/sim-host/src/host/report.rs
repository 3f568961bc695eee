//! Results of a case, and their comparison with published values.

use std::collections::BTreeMap;

use serde::Serialize;
use suimon_sim_kernel::Figure;

use crate::host::resolved_case::ResolvedCase;
use crate::host::spec::{Comparison, Expectation, HostScenario, Measure};
use crate::host::totals::{CaseTotals, VmTotals};

/// Results of a case of the scenario.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Report {
    pub(crate) case: String,
    pub(crate) vms: Vec<VmsReport>,
    pub(crate) cpu_percent: f64,
    /// CPU time per request in µs, summed over all CPUs.
    #[serde(rename = "cpu_us")]
    pub(crate) cpu_us_per_request: f64,
    pub(crate) watts: f64,
    pub(crate) score: f64,
    /// Frames per second between VMs that left the host.
    #[serde(rename = "left")]
    pub(crate) frames_out_per_s: f64,
    /// Broadcasts of VMs per second that left the host.
    #[serde(rename = "left_broadcasts")]
    pub(crate) broadcasts_out_per_s: f64,
}

/// Results of the VMs of a kind.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct VmsReport {
    pub(crate) name: String,
    pub(crate) count: usize,
    /// Requests per second of all VMs of the kind together.
    #[serde(rename = "rate")]
    pub(crate) requests_per_s: f64,
    pub(crate) mbit_s: f64,
    /// CPU time of the VM per request in µs.
    #[serde(rename = "vm_us")]
    pub(crate) vm_us_per_request: f64,
    /// CPU time of the host per request of the VM, in µs.
    #[serde(rename = "host_us")]
    pub(crate) host_us_per_request: f64,
    #[serde(rename = "modules_us")]
    pub(crate) module_us_per_request: BTreeMap<String, f64>,
}

/// Summarises the totals of a case.
pub(crate) fn report(plan: &ResolvedCase<'_>, sum: &CaseTotals) -> Report {
    let seconds = plan.scenario.measure_ms as f64 / 1e3;
    let busy = sum.busy_ns.iter().sum::<u64>() as f64;
    let all_ns = seconds * 1e9 * f64::from(plan.machine.logical_cpus);
    let requests =
        sum.vms.iter().map(|vm_sum| vm_sum.completed_requests).sum::<u64>().max(1) as f64;
    let (mut score, mut scored) = (0.0, 0.0);
    let mut vms = Vec::new();
    for spec in &plan.scenario.vms {
        let kind_sums = plan.vms.iter().zip(&sum.vms).filter(|(vm, _)| vm.spec.name == spec.name);
        let kind_sums: Vec<&VmTotals> = kind_sums.map(|(_, sum)| sum).collect();
        let total =
            |of_vm: fn(&VmTotals) -> u64| kind_sums.iter().map(|vm| of_vm(vm)).sum::<u64>() as f64;
        let count = total(|vm_sum| vm_sum.completed_requests);
        let us_per_request = |ns: f64| ns / 1e3 / count.max(1.0);
        let rate = count / seconds;
        if let Some(reference) = spec.reference_rate {
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
            requests_per_s: rate,
            mbit_s: total(|vm_sum| vm_sum.bytes) * 8.0 / 1e6 / seconds,
            vm_us_per_request: us_per_request(total(|vm_sum| vm_sum.vm_ns)),
            host_us_per_request: us_per_request(total(|vm_sum| vm_sum.host_ns)),
            module_us_per_request: modules.collect(),
        });
    }
    Report {
        case: plan.case.name.clone(),
        vms: vms.into_iter().filter(|vms_report| vms_report.count > 0).collect(),
        cpu_percent: busy * 100.0 / all_ns,
        cpu_us_per_request: busy / 1e3 / requests,
        watts: sum.energy as f64 / 1e12 / seconds,
        score: if scored > 0.0 { score / scored } else { 0.0 },
        frames_out_per_s: sum.frames_out as f64 / seconds,
        broadcasts_out_per_s: sum.broadcasts_out as f64 / seconds,
    }
}

impl Report {
    fn measure(&self, measure: Measure, name: &str) -> f64 {
        let vms = || self.vms.iter().filter(|vms| name.is_empty() || vms.name == name);
        let mean = |weighted_mean: fn(&VmsReport) -> f64| {
            let rate = vms().map(|vms| vms.requests_per_s).sum::<f64>();
            vms().map(|vms| weighted_mean(vms) * vms.requests_per_s).sum::<f64>()
                / rate.max(f64::MIN_POSITIVE)
        };
        match measure {
            Measure::Mbit => vms().map(|vms| vms.mbit_s).sum(),
            Measure::Rate => vms().map(|vms| vms.requests_per_s).sum(),
            Measure::Cpu => self.cpu_percent,
            Measure::CpuPerRequest => self.cpu_us_per_request,
            Measure::HostCpuPerRequest => mean(|vms| vms.host_us_per_request),
            Measure::VmCpuPerRequest => mean(|vms| vms.vm_us_per_request),
            Measure::ModuleCpuPerRequest => {
                let rates = self.vms.iter().map(|vms| {
                    vms.module_us_per_request.get(name).unwrap_or(&0.0) * vms.requests_per_s
                });
                let rate = self.vms.iter().map(|vms| vms.requests_per_s).sum::<f64>();
                rates.sum::<f64>() / rate.max(f64::MIN_POSITIVE)
            }
            Measure::Watts => self.watts,
            Measure::Score => self.score,
            Measure::FramesOut => self.frames_out_per_s,
            Measure::BroadcastsOut => self.broadcasts_out_per_s,
        }
    }
}

/// Returns the published figures with the simulated results.
pub(crate) fn figures(scenario: &HostScenario, reports: &[Report]) -> Vec<Figure> {
    let mut figures = Vec::new();
    for (case, report) in scenario.case.iter().zip(reports) {
        for figure in &case.figure {
            let expect = &figure.expectation;
            let reference = expect.reference_case.as_ref();
            let other = reference
                .and_then(|name| reports.iter().find(|other_report| other_report.case == *name));
            let (text, value) =
                match reference.filter(|_| expect.comparison == Comparison::PercentFromBest) {
                    Some(names) => best_case(expect, report, names, reports),
                    None => compare(expect, report, other),
                };
            figures.push(Figure {
                step: case.name.clone(),
                quantity: expectation_text(expect),
                published: figure.published.clone(),
                simulated_value: text,
                agrees: value >= expect.from && value <= expect.to,
                purpose: figure.purpose,
            });
        }
    }
    figures
}

fn expectation_text(expect: &Expectation) -> String {
    match (
        expect.reference_case.as_ref().filter(|_| expect.comparison != Comparison::PercentFromBest),
        expect.measure_filter.as_str(),
    ) {
        (None, "") => "all".to_owned(),
        (None, subject) => subject.to_owned(),
        (Some(reference), "") => format!("relative to {reference}"),
        (Some(reference), subject) => format!("{subject}, relative to {reference}"),
    }
}

/// Returns the result as text and as the number that the expectation limits.
fn compare(expect: &Expectation, report: &Report, other: Option<&Report>) -> (String, f64) {
    let value = report.measure(expect.measure, &expect.measure_filter);
    let unit = match expect.measure {
        Measure::Mbit => "Mbit/s",
        Measure::Rate | Measure::FramesOut | Measure::BroadcastsOut => "per second",
        Measure::Cpu => "% of all CPUs",
        Measure::CpuPerRequest
        | Measure::HostCpuPerRequest
        | Measure::VmCpuPerRequest
        | Measure::ModuleCpuPerRequest => "µs per request",
        Measure::Watts => "W",
        Measure::Score => "points",
    };
    let digits = match expect.measure {
        Measure::Mbit | Measure::Rate | Measure::FramesOut | Measure::BroadcastsOut => 0,
        Measure::Cpu | Measure::Watts => 1,
        _ => 2,
    };
    let Some(other) = other.map(|report| report.measure(expect.measure, &expect.measure_filter))
    else {
        return (format!("{value:.digits$} {unit}"), value);
    };
    let percent = (value / other.max(f64::MIN_POSITIVE) - 1.0) * 100.0;
    let values = format!("{value:.digits$} and {other:.digits$} {unit}");
    match expect.comparison {
        Comparison::Ratio => (format!("{:.2} times: {values}", value / other), value / other),
        Comparison::InverseRatio if value > 0.0 => {
            (format!("{:.0} times less: {values}", other / value), other / value)
        }
        Comparison::InverseRatio => (format!("nothing: {values}"), f64::INFINITY),
        Comparison::PercentIncrease => (format!("{percent:.1} % more: {values}"), percent),
        Comparison::PercentDecrease => {
            (format!("{:.1} % less: {values}", positive(-percent)), -percent)
        }
        Comparison::Difference | Comparison::PercentFromBest => {
            (format!("{:.1} {unit} more", value - other), value - other)
        }
    }
}

/// Returns a text about the case with the best value among those whose names begin with `names`,
/// and the relative difference of this case from it (0 or negative).
fn best_case(
    expect: &Expectation,
    report: &Report,
    names: &str,
    reports: &[Report],
) -> (String, f64) {
    let value = |candidate: &Report| candidate.measure(expect.measure, &expect.measure_filter);
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
