//! Score of tiles, defined as in the simulator: see `docs/experiments.md`.

/// Rates per second of the application VMs of one tile, or of one VM of each kind alone.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Rates {
    pub(super) java: f64,
    pub(super) database: f64,
    pub(super) web: f64,
}

impl Rates {
    /// Returns the score of a tile: the mean of its VMs' rates relative to those of one VM alone.
    pub(super) fn score(&self, solo_rates: &Self) -> f64 {
        let shares = self.shares(solo_rates);
        shares.iter().sum::<f64>() / shares.len() as f64
    }

    /// Returns the rate of each VM relative to one VM alone: Java, database, web.
    fn shares(&self, solo_rates: &Self) -> [f64; 3] {
        // The caller has rejected rates of 0 for a single VM.
        [
            self.java / solo_rates.java,
            self.database / solo_rates.database,
            self.web / solo_rates.web,
        ]
    }
}

/// Score of all tiles of a machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Score {
    /// Sum of the tiles' scores.
    pub(super) system: f64,
    /// Lowest score of a tile.
    pub(super) lowest: f64,
    /// Sums over tiles by kind of VM: Java, database, web. Their mean is the score of the system.
    pub(super) by_vm_kind: [f64; 3],
}

impl Score {
    pub(super) fn compute(tiles: &[Rates], solo_rates: &Rates) -> Self {
        let scores: Vec<f64> = tiles.iter().map(|tile| tile.score(solo_rates)).collect();
        let mut kinds = [0.0; 3];
        for tile in tiles {
            for (sum, share) in kinds.iter_mut().zip(tile.shares(solo_rates)) {
                *sum += share;
            }
        }
        let lowest = scores.iter().copied().min_by(f64::total_cmp).unwrap_or(0.0);
        Self { system: scores.iter().sum(), lowest, by_vm_kind: kinds }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALONE: Rates = Rates { java: 1000.0, database: 100.0, web: 4000.0 };

    #[test]
    fn a_tile_as_fast_as_single_vms_scores_one_point_and_scores_add_up() {
        let score = Score::compute(&[ALONE, ALONE], &ALONE);
        assert_eq!((score.system, score.lowest, score.by_vm_kind), (2.0, 1.0, [2.0, 2.0, 2.0]));
    }

    #[test]
    fn kinds_have_equal_weight_in_the_score() {
        let half_java = Rates { java: 500.0, ..ALONE };
        let half_web = Rates { web: 2000.0, ..ALONE };
        let system_score = |tile| Score::compute(&[tile], &ALONE).system;
        assert_eq!(system_score(half_java), system_score(half_web));
        assert!((system_score(half_java) - 2.5 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn the_lowest_tile_is_reported_and_the_mean_over_kinds_is_the_score_of_the_system() {
        let slow = Rates { java: 100.0, database: 10.0, web: 400.0 };
        let score = Score::compute(&[ALONE, slow], &ALONE);
        assert!((score.lowest - 0.1).abs() < 1e-12);
        assert!((score.by_vm_kind.iter().sum::<f64>() / 3.0 - score.system).abs() < 1e-12);
    }
}
