export const GAMES = {
  "tilewe": {
    "title": "Tilewe",
    "tagline": "Corner to corner, on a board for one to four.",
    "rules": [
      "The first piece covers any corner of the board.",
      "Each new piece must touch a piece of its own colour at a corner, and never along an edge. Other colours may be touched.",
      "Whoever cannot place a piece any more is passed over; the others go on.",
      "Every cell that you cover is a point. Most points win."
    ]
  },
  "duo": {
    "title": "Duo, modified",
    "tagline": "Two corners each, and they stay open.",
    "rules": [
      "Your first piece covers one of the two corners on your side; both stay open to you for the whole game.",
      "Each new piece must touch a piece of its own colour at a corner, and never along an edge. Other colours may be touched.",
      "Whoever cannot place a piece any more is passed over; the others go on.",
      "Every cell that you cover is a point. Most points win."
    ]
  },
  "duo_official": {
    "title": "Duo, official",
    "tagline": "The two-player classic on 14 × 14.",
    "rules": [
      "Your first piece covers your start cell, marked on the board.",
      "Each new piece must touch a piece of its own colour at a corner, and never along an edge. Other colours may be touched.",
      "Whoever cannot place a piece any more is passed over; the others go on.",
      "Every cell that you cover is a point; all pieces placed are worth 15 more, and 5 more again if the single cell came last."
    ]
  },
  "classic": {
    "title": "Classic",
    "tagline": "Four colours, four corners, one board.",
    "rules": [
      "Your first piece covers your corner of the board.",
      "Each new piece must touch a piece of its own colour at a corner, and never along an edge. Other colours may be touched.",
      "Whoever cannot place a piece any more is passed over; the others go on.",
      "Every cell that you cover is a point; all pieces placed are worth 15 more, and 5 more again if the single cell came last."
    ]
  },
  "classic_2": {
    "title": "Classic for two",
    "tagline": "Two players with two colours each.",
    "rules": [
      "You play two colours in turn, which help each other; their points add up.",
      "The first piece of a colour covers its corner of the board.",
      "Each new piece must touch a piece of its own colour at a corner, and never along an edge. Other colours may be touched.",
      "Whoever cannot place a piece any more is passed over; the others go on."
    ]
  },
  "santorini": {
    "title": "Santorini",
    "tagline": "Move, build, and be first on the third level.",
    "rules": [
      "In each turn you move one of your two workers to a neighbouring cell, at most one level up, and then build a level beside it.",
      "A fourth level is a dome: nobody can stand on it.",
      "Whoever steps up to the third level wins. Whoever cannot move loses."
    ]
  },
  "triominos": {
    "title": "Triominos",
    "tagline": "Triangles, numbers, a little luck.",
    "rules": [
      "Place a tile beside another so that both numbers along the edge are the same. Its three numbers are your points.",
      "Closing a hexagon and building a bridge are worth more.",
      "If nothing fits, draw: each tile costs 5 points, at most three in a turn. After that you pass for 10.",
      "Whoever has placed all tiles gets 25 points, and what the others have left."
    ]
  }
};
