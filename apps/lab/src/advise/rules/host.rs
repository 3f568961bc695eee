//! Uplinks, power and how much a host carries.

use super::{AS_GOOD, estimate, mean};
use crate::advise::{Advice, Target, Value};
use crate::number::number;
use crate::record::Run;
use crate::words::Words;

/// The way to an uplink that sends more with offloads as they are by default, or as much with less
/// CPU time.
pub(super) fn driver(run: &Run) -> Option<Advice> {
    let of = |case: &str, driver: &'static str| {
        Some((driver, mean(run, case, "sent")?, mean(run, case, "cpu-byte")?))
    };
    let mut all = [of("packet+both", "af_packet")?, of("xdp+both", "af_xdp")?];
    all.sort_by(|(_, a, _), (_, b, _)| b.total_cmp(a));
    let [(fast, most, fast_cpu), (slow, less, slow_cpu)] = all;
    let better = if less < most * AS_GOOD {
        fast
    } else if slow_cpu < fast_cpu * AS_GOOD {
        slow
    } else if fast_cpu < slow_cpu * AS_GOOD {
        fast
    } else {
        return None;
    };
    let told = |driver: &str, sent: f64, cpu: f64| {
        format!("{driver} {} Mbit/s, {} ns", number(sent, None), number(cpu, None))
    };
    let told = format!("{}; {}", told(fast, most, fast_cpu), told(slow, less, slow_cpu));
    Some(Advice {
        reason: Words::new(
            format!(
                "An FTP server's data left by an uplink with, and a byte took of CPU time: {told}."
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

/// The plan that saves CPU time and costs no load anything, or else the one that every load has more
/// with.
pub(super) fn power_plan(run: &Run) -> Option<Advice> {
    let loads = ["tcp-rate", "vhost-user-rate", "nbd-rate"];
    // How much more or less of a load, where the run tells it apart from balanced.
    let ratio =
        |plan: &str, load: &str| Some(mean(run, plan, load)? / mean(run, "balanced", load)?);
    let least = |plan: &str| {
        let all: Option<Vec<f64>> = loads.iter().map(|load| ratio(plan, load)).collect();
        Some(all?.into_iter().fold(f64::INFINITY, f64::min))
    };
    let (plan, least) = if least("power-saver")? >= AS_GOOD {
        ("power-saver", least("power-saver")?)
    } else if least("high-performance")? * AS_GOOD >= 1.0 {
        ("high-performance", least("high-performance")?)
    } else {
        return None;
    };
    let percent = number(100.0 * least, None);
    Some(Advice {
        reason: Words::new(
            format!("With {plan} each load had at least {percent} % of what it had with balanced."),
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

/// With how many tiles the machine is at its best: something to know, not to set.
pub(super) fn tiles(run: &Run) -> Option<Advice> {
    let scores =
        run.cases.iter().filter_map(|case| Some((case, estimate(run, &case.id, "score")?)));
    let mut scores: Vec<_> = scores.collect();
    scores.sort_by(|(_, a), (_, b)| b.mean.total_cmp(&a.mean));
    let ((best, score), rest) = scores.split_first()?;
    rest.first()?;
    let (tiles, score) = (&best.words, number(score.mean, None));
    Some(Advice {
        reason: Words::new(
            format!(
                "A Java, a database and a web VM beside each other: the machine does most with {}, a score of {score}.",
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
