//! Rules about uplink drivers, power plans and the number of tiles.

use suimon_lab_run::{Run, Words};

use super::estimates::{AS_GOOD, estimate, is_surely_more};
use crate::advise::advice::{Advice, Target, Value};
use crate::number::number;

/// Recommends the uplink driver with the higher throughput with default offloads, or with less CPU
/// time at equal throughput. Returns `None` if the differences are within the spread.
pub(super) fn driver(run: &Run) -> Option<Advice> {
    let of = |case: &str, driver: &'static str| {
        Some((driver, estimate(run, case, "sent")?, estimate(run, case, "cpu-byte")?))
    };
    let mut all = [of("packet+both", "af_packet")?, of("xdp+both", "af_xdp")?];
    all.sort_by(|(_, a, _), (_, b, _)| b.mean.total_cmp(&a.mean));
    let [(fast, most, fast_cpu), (slow, less, slow_cpu)] = all;
    let better = if less.mean < most.mean * AS_GOOD {
        is_surely_more(&most, &less).then_some(fast)?
    } else if slow_cpu.mean < fast_cpu.mean * AS_GOOD {
        is_surely_more(&fast_cpu, &slow_cpu).then_some(slow)?
    } else if fast_cpu.mean < slow_cpu.mean * AS_GOOD {
        is_surely_more(&slow_cpu, &fast_cpu).then_some(fast)?
    } else {
        return None;
    };
    let told = |driver: &str, sent: f64, cpu: f64| {
        format!("{driver} {} Mbit/s, {} ns", number(sent, None), number(cpu, None))
    };
    let told = format!(
        "{}; {}",
        told(fast, most.mean, fast_cpu.mean),
        told(slow, less.mean, slow_cpu.mean)
    );
    Some(Advice {
        reason: Words::new(
            format!(
                "Transmit rate of an FTP server's data by uplink driver, and CPU time per byte: \
                 {told}."
            ),
            format!("FTP サーバーのデータ送信速度と 1 バイトあたりの CPU 時間: {told}。"),
        ),
        run: run.id.clone(),
        target: Some(Target {
            table: "uplink",
            only: None,
            key: "driver",
            value: Value::Text(better.to_owned()),
        }),
    })
}

/// Loads for which each plan has a rate.
const LOADS: [&str; 3] = ["tcp", "vhost-user", "nbd"];

/// Recommends the power plan that significantly reduces power without reducing the rate of any
/// load, or else the one that significantly increases every rate. On a machine that does not
/// support the plans' settings the results do not differ, and the rule returns `None`.
pub(super) fn power_plan(run: &Run) -> Option<Advice> {
    let of =
        |plan: &str, load: &str, measure: &str| estimate(run, plan, &format!("{load}-{measure}"));
    let least = |plan: &str| {
        let ratio =
            |load: &&str| Some(of(plan, load, "rate")?.mean / of("balanced", load, "rate")?.mean);
        let all: Option<Vec<f64>> = LOADS.iter().map(ratio).collect();
        Some(all?.into_iter().fold(f64::INFINITY, f64::min))
    };
    let all_have_more = |more: &str, less: &str, measure: &str| {
        LOADS.iter().all(|load| {
            let both = of(more, load, measure).zip(of(less, load, measure));
            both.is_some_and(|(more, less)| is_surely_more(&more, &less))
        })
    };
    let (saver, high) = ("power-saver", "high-performance");
    let (plan, least) = if least(saver)? >= AS_GOOD && all_have_more("balanced", saver, "watts") {
        (saver, least(saver)?)
    } else if least(high)? * AS_GOOD >= 1.0 && all_have_more(high, "balanced", "rate") {
        (high, least(high)?)
    } else {
        return None;
    };
    let percent = number(100.0 * least, None);
    Some(Advice {
        reason: Words::new(
            format!(
                "With {plan}, throughput of each load is at least {percent} % of that with \
                 balanced."
            ),
            format!("{plan} では、どの負荷も balanced の {percent} % 以上でした。"),
        ),
        run: run.id.clone(),
        target: Some(Target {
            table: "power",
            only: None,
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
    is_surely_more(score, second).then_some(())?;
    let (tiles, score) = (&best.words, number(score.mean, None));
    Some(Advice {
        reason: Words::new(
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
        run: run.id.clone(),
        target: None,
    })
}
