"""Tilewe, the Duos and the classic games: one rules engine, variants as data.

The modules, each built on those above it::

    pieces                 the 21 pieces and their 91 orientations
    config                 parameters of the rules, and the variants by name
    boards                 packed boards, and the planes that decide legality
    movegen, movegen_conv  legal placements: on packed boards, and as a convolution
    rules                  state, legality, placing, passing
    contacts               placements counted by contact, as the package ``tilewe`` counts moves
    heuristics             action logits and position values without lookahead; ``heuristic_weights`` are learned
    one_ply, policies      the sample engines of ``tilewe``
    observation, symmetry  planes for networks; symmetries of the board
    notation, drawing      names of actions; pictures
    position, offers       positions in plain Python; titles and rules for players
    game                   the ``Game``
"""
