package lean

func sign() {}
