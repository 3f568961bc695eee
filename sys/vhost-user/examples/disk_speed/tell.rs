//! Output of the measured rates.

use crate::wanted::Parameters;
use crate::{Peer, Rates};

fn three(mut numbers: Vec<f64>) -> String {
    numbers.sort_by(f64::total_cmp);
    let (low, high) = (numbers[0], numbers[numbers.len() - 1]);
    format!("{:7.2} ({low:.2} to {high:.2})", numbers[numbers.len() / 2])
}

/// Prints the rates of all rounds as JSON.
pub(crate) fn print_json(peers: &[Peer]) {
    let of_round = |rates: &Rates| {
        serde_json::json!({
            "requests_per_second": rates.per_second,
            "requests_per_cpu_second": rates.per_cpu_second,
            "kicks_per_second": rates.kicks_per_second,
        })
    };
    let of_peer = |peer: &Peer| {
        let rounds: Vec<_> = peer.rounds.iter().map(of_round).collect();
        serde_json::json!({ "name": peer.name, "rounds": rounds })
    };
    println!("{}", peers.iter().map(of_peer).collect::<serde_json::Value>());
}

/// Prints medians, ranges and ratios as text.
pub(crate) fn print_medians(peers: &[Peer], wanted: &Parameters) {
    println!(
        "requests of {} KiB, depth {}; millions; median (lowest to highest) of {} rounds",
        wanted.load.bytes >> 10,
        wanted.depth,
        wanted.rounds
    );
    let cpu = |rates: &Rates| rates.per_cpu_second.unwrap_or(f64::NAN);
    for peer in peers {
        let all = |rate: &dyn Fn(&Rates) -> f64| three(peer.rounds.iter().map(rate).collect());
        println!(
            "{:24} a second {}   a CPU second {}   thousand kicks a second {}",
            peer.name,
            all(&|rates| rates.per_second / 1e6),
            all(&|rates| cpu(rates) / 1e6),
            all(&|rates| rates.kicks_per_second / 1e3),
        );
    }
    let Some((first, others)) = peers.split_first() else { return };
    for other in others {
        let ratio = |rate: &dyn Fn(&Rates) -> f64| {
            let pairs = first.rounds.iter().zip(&other.rounds);
            three(pairs.map(|(ours, theirs)| rate(ours) / rate(theirs)).collect())
        };
        println!(
            "{} / {}: a second {}, a CPU second {}",
            first.name,
            other.name,
            ratio(&|rates| rates.per_second),
            ratio(&cpu)
        );
    }
}
