//! Longest prefix match: a radix tree over bytes, which does not change after it was built.

use crate::steps::Steps;

/// Prefixes, each with a number. A look-up visits at most one node for each byte of the path, however many
/// prefixes there are.
#[derive(Debug)]
pub(crate) struct Prefixes {
    nodes: Vec<Node>,
}

#[derive(Debug, Default)]
struct Node {
    /// The bytes of the edge that leads to this node.
    label: Vec<u8>,
    children: Children,
    /// The number of the prefix that ends here.
    value: Option<u32>,
}

/// The child nodes, by the first byte of their label.
#[derive(Debug)]
enum Children {
    Few(Vec<(u8, u32)>),
    /// An entry for each byte; [`NOBODY`] if there is no node.
    Many(Box<[u32; 256]>),
}

const NOBODY: u32 = u32::MAX;

/// Up to so many children are compared one by one.
const FEW: usize = 8;

impl Prefixes {
    pub(crate) fn new() -> Self {
        Prefixes { nodes: vec![Node::default()] }
    }

    /// Adds a prefix. Returns the number that it has already, if it is there.
    pub(crate) fn enter(&mut self, prefix: &[u8], value: u32) -> Option<u32> {
        let (mut at, mut rest) = (0, prefix);
        loop {
            let Some((&first, _)) = rest.split_first() else {
                let before = self.nodes[at].value;
                self.nodes[at].value = before.or(Some(value));
                return before;
            };
            let Some(child) = self.nodes[at].children.get(first) else {
                self.add(at, Node { label: rest.to_vec(), value: Some(value), ..Node::default() });
                return None;
            };
            let common = common(&self.nodes[child].label, rest);
            if common < self.nodes[child].label.len() {
                self.split(child, common);
            }
            (at, rest) = (child, &rest[common..]);
        }
    }

    /// The number of the longest prefix of `path`.
    #[inline]
    pub(crate) fn longest(&self, path: &[u8], steps: &mut impl Steps) -> Option<u32> {
        let mut node = self.nodes.first()?;
        let (mut found, mut rest) = (node.value, path);
        while let Some((first, _)) = rest.split_first() {
            let Some(child) = node.children.get(*first) else { break };
            steps.step();
            node = self.nodes.get(child)?;
            let Some(behind) = rest.strip_prefix(&node.label[..]) else { break };
            found = node.value.or(found);
            rest = behind;
        }
        found
    }

    fn add(&mut self, parent: usize, node: Node) {
        let first = node.label.first().copied().unwrap_or_default();
        let index = u32::try_from(self.nodes.len()).unwrap_or(NOBODY);
        self.nodes.push(node);
        self.nodes[parent].children.put(first, index);
    }

    /// The node keeps its first `at` bytes; the rest of it becomes its only child.
    fn split(&mut self, index: usize, at: usize) {
        let node = &mut self.nodes[index];
        let tail = node.label.split_off(at);
        let below = Node {
            label: tail,
            children: std::mem::take(&mut node.children),
            value: node.value.take(),
        };
        self.add(index, below);
    }
}

impl Default for Children {
    fn default() -> Self {
        Children::Few(Vec::new())
    }
}

impl Children {
    #[inline]
    fn get(&self, first: u8) -> Option<usize> {
        let child = match self {
            Children::Few(list) => list.iter().find(|(byte, _)| *byte == first)?.1,
            Children::Many(all) => all[usize::from(first)],
        };
        (child != NOBODY).then_some(child as usize)
    }

    fn put(&mut self, first: u8, child: u32) {
        match self {
            Children::Few(list) if list.len() < FEW => list.push((first, child)),
            Children::Few(list) => {
                let mut all = Box::new([NOBODY; 256]);
                for (byte, child) in list.iter().copied().chain([(first, child)]) {
                    all[usize::from(byte)] = child;
                }
                *self = Children::Many(all);
            }
            Children::Many(all) => all[usize::from(first)] = child,
        }
    }
}

fn common(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_longest_prefix_is_found(
            prefixes in prop::collection::vec("/[a-c/]{0,6}", 0..40),
            wide in prop::collection::vec("/[ -~]{0,2}", 0..40),
            paths in prop::collection::vec("/[a-c/]{0,9}|/[ -~]{0,3}", 1..20),
        ) {
            let mut tree = Prefixes::new();
            let mut list: Vec<String> = Vec::new();
            for prefix in prefixes.into_iter().chain(wide) {
                let known = list.iter().position(|p| *p == prefix);
                let value = u32::try_from(list.len()).unwrap();
                let before = tree.enter(prefix.as_bytes(), value);
                prop_assert_eq!(before, known.map(|k| u32::try_from(k).unwrap()));
                if known.is_none() {
                    list.push(prefix);
                }
            }
            for path in paths {
                let naive = list
                    .iter()
                    .enumerate()
                    .filter(|(_, prefix)| path.starts_with(prefix.as_str()))
                    .max_by_key(|(_, prefix)| prefix.len())
                    .map(|(index, _)| u32::try_from(index).unwrap());
                let mut steps = 0u32;
                prop_assert_eq!(tree.longest(path.as_bytes(), &mut steps), naive);
                prop_assert!(steps as usize <= path.len());
            }
        }
    }
}
