//! Rules about uplink drivers, power plans and the number of tiles.

use suimon_lab_run::{LocalizedText, Run};

use super::estimates::{EQUIVALENT_RATIO, estimate, is_significantly_higher};
use crate::advise::advice::{Advice, RecommendedSetting, Value};
use crate::number::format_number;

/// Recommends the uplink driver with the higher throughput with default offloads, or with less CPU
/// time at equal throughput. Returns `None` if the differences are within the spread.
pub(super) fn driver(run: &Run) -> Option<Advice> {
    let driver_result = |case: &str, driver: &'static str| {
        Some((driver, estimate(run, case, "sent")?, estimate(run, case, "cpu-byte")?))
    };
    let mut results =
        [driver_result("packet+both", "af_packet")?, driver_result("xdp+both", "af_xdp")?];
    results.sort_by(|(_, a, _), (_, b, _)| b.mean.total_cmp(&a.mean));
    let [(fast, fast_rate, fast_cpu), (slow, slow_rate, slow_cpu)] = results;
    let better = if slow_rate.mean < fast_rate.mean * EQUIVALENT_RATIO {
        is_significantly_higher(&fast_rate, &slow_rate).then_some(fast)?
    } else if slow_cpu.mean < fast_cpu.mean * EQUIVALENT_RATIO {
        is_significantly_higher(&fast_cpu, &slow_cpu).then_some(slow)?
    } else if fast_cpu.mean < slow_cpu.mean * EQUIVALENT_RATIO {
        is_significantly_higher(&slow_cpu, &fast_cpu).then_some(fast)?
    } else {
        return None;
    };
    let text_of = |driver: &str, rate: f64, cpu: f64| {
        format!("{driver} {} Mbit/s, {} ns", format_number(rate, None), format_number(cpu, None))
    };
    let text = format!(
        "{}; {}",
        text_of(fast, fast_rate.mean, fast_cpu.mean),
        text_of(slow, slow_rate.mean, slow_cpu.mean)
    );
    Some(Advice {
        reason: LocalizedText::new(
            format!(
                "Transmit rate of an FTP server's data by uplink driver, and CPU time per byte: \
                 {text}."
            ),
            format!("FTP サーバーのデータ送信速度と 1 バイトあたりの CPU 時間: {text}。"),
        ),
        run_id: run.id.clone(),
        target: Some(RecommendedSetting {
            table: "uplink",
            table_filter: None,
            key: "driver",
            value: Value::Text(better.to_owned()),
        }),
    })
}

/// Loads that the results of a plan contain, as in ids of measures such as `tcp-rate`.
const LOADS: [&str; 3] = ["tcp", "vhost-user", "nbd"];

/// Recommends the power plan that significantly reduces power without reducing the rate of any
/// load, or else the one that significantly increases every rate. On a machine that does not
/// support the plans' settings the results do not differ, and the rule returns `None`.
pub(super) fn power_plan(run: &Run) -> Option<Advice> {
    let plan_estimate =
        |plan: &str, load: &str, measure: &str| estimate(run, plan, &format!("{load}-{measure}"));
    let lowest_ratio = |plan: &str| {
        let ratio = |load: &&str| {
            Some(
                plan_estimate(plan, load, "rate")?.mean
                    / plan_estimate("balanced", load, "rate")?.mean,
            )
        };
        let ratios: Option<Vec<f64>> = LOADS.iter().map(ratio).collect();
        Some(ratios?.into_iter().fold(f64::INFINITY, f64::min))
    };
    let all_have_more = |larger: &str, smaller: &str, measure: &str| {
        LOADS.iter().all(|load| {
            let estimates =
                plan_estimate(larger, load, measure).zip(plan_estimate(smaller, load, measure));
            estimates.is_some_and(|(larger, smaller)| is_significantly_higher(&larger, &smaller))
        })
    };
    let (saver, high) = ("power-saver", "high-performance");
    let (plan, lowest_ratio) =
        if lowest_ratio(saver)? >= EQUIVALENT_RATIO && all_have_more("balanced", saver, "watts") {
            (saver, lowest_ratio(saver)?)
        } else if lowest_ratio(high)? * EQUIVALENT_RATIO >= 1.0
            && all_have_more(high, "balanced", "rate")
        {
            (high, lowest_ratio(high)?)
        } else {
            return None;
        };
    let percent = format_number(100.0 * lowest_ratio, None);
    Some(Advice {
        reason: LocalizedText::new(
            format!(
                "With {plan}, throughput of each load is at least {percent} % of that with \
                 balanced."
            ),
            format!("{plan} では、どの負荷も balanced の {percent} % 以上でした。"),
        ),
        run_id: run.id.clone(),
        target: Some(RecommendedSetting {
            table: "power",
            table_filter: None,
            key: "plan",
            value: Value::Text(plan.to_owned()),
        }),
    })
}

/// Reports the number of tiles with the significantly highest score. Informational.
pub(super) fn tiles(run: &Run) -> Option<Advice> {
    let scores =
        run.cases.iter().filter_map(|case| Some((case, estimate(run, &case.id, "score")?)));
    let mut scores: Vec<_> = scores.collect();
    scores.sort_by(|(_, a), (_, b)| b.mean.total_cmp(&a.mean));
    let ((best, score), rest) = scores.split_first()?;
    let (_, second) = rest.first()?;
    is_significantly_higher(score, second).then_some(())?;
    let (tiles, score) = (&best.description, format_number(score.mean, None));
    Some(Advice {
        reason: LocalizedText::new(
            format!(
                "Highest score, {score}, of a Java, a database and a web VM on one machine: with \
                 {}.",
                tiles.en
            ),
            format!(
                "Java・データベース・Web の VM の組では、{} のときにスコアが最大 ({score}) です。",
                tiles.ja
            ),
        ),
        run_id: run.id.clone(),
        target: None,
    })
}
