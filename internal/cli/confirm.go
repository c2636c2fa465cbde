package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"aob.dev/writ/internal/datadir"
)

// confirmWait is how long a running writ has to take up what was confirmed.
const confirmWait = 10 * time.Second

func confirmCommand(std IO) *cobra.Command {
	var data string
	return answering(std, &cobra.Command{
		Use: "confirm CONDITION", Short: "Say that you have looked at what keeps writ from taking orders", Args: cobra.ExactArgs(1),
		Long: "Say that you have looked at a condition that keeps the writ of a data directory\n" +
			"from taking orders (see /readyz or writ doctor):\n\n" +
			"  clock    it was set by more than a minute while writ ran, and is right now\n" +
			"  ledger   leaves that were promised are missing, and the journal is sound\n" +
			"  witness  it has seen another log, and this one is to go on all the same",
		ValidArgs: datadir.Confirmable,
	}, func(cmd *cobra.Command, args []string) (answer, error) {
		ctx, cancel := context.WithTimeout(cmd.Context(), confirmWait)
		defer cancel()
		err := datadir.Confirm(ctx, data, args[0], time.Now)
		return answer{data: map[string]string{"confirmed": args[0]}, note: args[0] + " is confirmed\n"}, err
	}, dataFlag(&data))
}
