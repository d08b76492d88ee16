//! A list with at least one element, and in most machines exactly one: the first is a field of its
//! own, so that it is found without a bounds check, and the others cost one comparison.

use std::ops::{Index, IndexMut};

/// The elements, numbered from 0.
#[derive(Debug)]
pub struct Few<T> {
    first: T,
    others: Vec<T>,
}

impl<T> Few<T> {
    /// The elements in this order.
    ///
    /// # Panics
    /// If there is none, or more than 16 bits can number.
    pub fn new(all: impl IntoIterator<Item = T>) -> Few<T> {
        let mut all = all.into_iter();
        let first = all.next().expect("there is at least one");
        let others: Vec<_> = all.collect();
        assert!(u16::try_from(others.len()).is_ok(), "they are numbered by 16 bits");
        Few { first, others }
    }

    /// There is exactly one.
    #[inline]
    pub fn is_one(&self) -> bool {
        self.others.is_empty()
    }

    /// All in order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        std::iter::once(&self.first).chain(&self.others)
    }

    /// All in order, to be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        std::iter::once(&mut self.first).chain(&mut self.others)
    }

    /// All in order, taken apart.
    pub fn into_vec(self) -> Vec<T> {
        std::iter::once(self.first).chain(self.others).collect()
    }

    /// The smallest value of all; the elements after the first are looked at only if they exist.
    #[inline(always)]
    pub fn least<V: Ord>(&self, value: impl Fn(usize, &T) -> V) -> V {
        let first = value(0, &self.first);
        if self.others.is_empty() { first } else { Few::least_of(&self.others, first, value) }
    }

    #[cold]
    fn least_of<V: Ord>(others: &[T], first: V, value: impl Fn(usize, &T) -> V) -> V {
        others.iter().enumerate().fold(first, |least, (index, one)| least.min(value(index + 1, one)))
    }

    /// Calls `act` for each, in order.
    #[inline(always)]
    pub fn each(&mut self, mut act: impl FnMut(usize, &mut T)) {
        act(0, &mut self.first);
        if !self.others.is_empty() {
            Few::each_other(&mut self.others, act);
        }
    }

    #[cold]
    fn each_other(others: &mut [T], mut act: impl FnMut(usize, &mut T)) {
        others.iter_mut().enumerate().for_each(|(index, one)| act(index + 1, one));
    }
}

impl<T> Index<usize> for Few<T> {
    type Output = T;

    #[inline]
    fn index(&self, index: usize) -> &T {
        match index {
            0 => &self.first,
            other => &self.others[other - 1],
        }
    }
}

impl<T> IndexMut<usize> for Few<T> {
    #[inline]
    fn index_mut(&mut self, index: usize) -> &mut T {
        match index {
            0 => &mut self.first,
            other => &mut self.others[other - 1],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_and_the_others_are_one_list() {
        let mut few = Few::new([7, 3, 5]);
        few.each(|index, value| *value += 10 * index);
        assert_eq!(few.iter().copied().collect::<Vec<_>>(), [7, 13, 25]);
        assert_eq!([few[0], few[1], few[2]], [7, 13, 25]);
        few[2] = 1;
        assert_eq!((few.least(|_, value| *value), few.least(|index, _| index)), (1, 0));
        assert_eq!((few.is_one(), few.into_vec()), (false, vec![7, 13, 1]));
        assert!(Few::new([1]).is_one());
    }
}
