//! Weights that change, groups whose next queue changes, and what is counted of both: small cases,
//! worked out by hand.

use super::promises::groups;
use super::*;

fn wf2q(cgroup_weights: &[u16]) -> Wf2q {
    let mut wf2q = Wf2q::new(Ticks::per_second(1000));
    wf2q.know_groups(&groups(cgroup_weights));
    wf2q
}

/// A queue of weight 100 that gets requests.
fn busy(wf2q: &mut Wf2q, group: u16, budget: i32) -> LeafId {
    let leaf = wf2q.add_leaf(CgroupId(group), Class::BestEffort, 100);
    wf2q.set_budget(leaf, budget);
    wf2q.add_busy(leaf, false, false, Nanos::ZERO);
    leaf
}

#[test]
fn the_sum_of_weights_follows_a_raised_weight_up_and_down() {
    let mut wf2q = wf2q(&[]);
    let raised = busy(&mut wf2q, 0, 1000);
    busy(&mut wf2q, 0, 1000);
    for (coefficient, sum) in [(1, 200), (30, 3100), (3000, 300_100), (1, 200)] {
        wf2q.set_coefficient(raised, coefficient);
        wf2q.mark_changed(raised);
        wf2q.update_weight(raised);
        assert_eq!(wf2q.wsum(CgroupId::ROOT, Class::BestEffort), sum, "coefficient {coefficient}");
    }
}

#[test]
fn a_groups_order_follows_the_small_budget_of_its_new_next_queue() {
    let mut wf2q = wf2q(&[100]);
    busy(&mut wf2q, 1, 1000);
    busy(&mut wf2q, 0, 500);
    // All of one weight: 10 sectors end before 500, and 500 before 1000.
    let quick = busy(&mut wf2q, 1, 10);
    assert_eq!(wf2q.next(Nanos::ZERO), Some(quick));
}

#[test]
fn shares_are_in_danger_only_while_more_than_one_group_has_requests() {
    let mut wf2q = wf2q(&[100, 100]);
    let first = busy(&mut wf2q, 1, 1000);
    assert!(!wf2q.is_asymmetric(None));
    let second = busy(&mut wf2q, 2, 1000);
    assert!(wf2q.is_asymmetric(None));
    wf2q.remove_busy(second, false, false, Nanos::ZERO);
    assert!(!wf2q.is_asymmetric(None));
    wf2q.remove_busy(first, false, false, Nanos::ZERO);
    assert!(!wf2q.is_asymmetric(None));
}
