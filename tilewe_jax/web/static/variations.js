// The moves of a study as a tree: the recorded game, its variations, and comments.

/** A position of the tree: the move that led to it, its view, and what is known about it. */
function newNode(parent, move, frame) {
  return { parent, move, frame, children: [], comment: "", next: null, state: null, analysis: null };
}

export class Tree {
  /** `replay` has `moves` and `frames` of the game, and its `comments` and `variations`, see the server's README.md. */
  constructor(replay) {
    this.root = newNode(null, null, replay.frames[0]);
    this.main = this.#add([this.root], 0, replay.moves, replay.frames.slice(1), replay);
  }

  /** Add moves after the first `move` moves of a line, with their comments and variations; return the new line. */
  #add(line, move, moves, frames, { comments = {}, variations = [] }) {
    const nodes = line.slice(0, move + 1);
    moves.forEach((each, index) => nodes.push(this.child(nodes.at(-1), each, frames[index])));
    for (const [number, text] of Object.entries(comments)) nodes[number].comment = text;
    for (const each of variations) this.#add(nodes, each.move, each.moves, each.frames, each);
    return nodes;
  }

  /** The position after a move, which is added to the tree if it is new. */
  child(node, move, frame) {
    let child = node.children.find((other) => other.move.id === move.id);
    if (!child) node.children.push((child = newNode(node, move, frame)));
    return child;
  }

  /** The positions from the start to a node. */
  pathTo(node) {
    return node ? [...this.pathTo(node.parent), node] : [];
  }

  /** The line through a node: the positions before it, and the moves after it that were shown last. */
  lineThrough(node) {
    const line = this.pathTo(node);
    line.forEach((each, index) => (each.next = line[index + 1] ?? each.next));
    for (let next = node.next ?? node.children[0]; next; next = next.next ?? next.children[0]) line.push(next);
    return line;
  }

  isMain(node) {
    return this.main.includes(node);
  }

  /** Remove a variation from a node on; return the node before it. */
  remove(node) {
    const { parent } = node;
    parent.children.splice(parent.children.indexOf(node), 1);
    if (parent.next === node) parent.next = null;
    return parent;
  }

  /** The comments and variations as data for the server, with actions in place of moves and views. */
  get data() {
    const tail = (node) => (node ? [node, ...tail(node.children[0])] : []);
    const write = (line, first) => {
      const comments = {};
      const variations = [];
      line.forEach((node, number) => {
        if (number < first) return;
        if (node.comment) comments[number] = node.comment;
        for (const child of node.children.filter((other) => other !== line[number + 1])) {
          const after = tail(child);
          variations.push({ move: number, actions: after.map(({ move }) => move.id), ...write([...line.slice(0, number + 1), ...after], number + 1) });
        }
      });
      return { comments, variations };
    };
    return write(this.main, 0);
  }
}
