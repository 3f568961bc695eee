use super::*;

#[test]
fn a_flood_of_events_is_cut_and_counted() {
    let mut budget = EventBudget::default();
    let now = Instant::now();
    let allowed = (0..1000).filter(|_| budget.take(now).is_some()).count();
    assert_eq!(allowed, EventBudget::BURST as usize);
    assert_eq!(budget.take(now + EventBudget::REFILL), Some(1000 - 32));
    assert_eq!(budget.take(now + EventBudget::REFILL), None);
}
