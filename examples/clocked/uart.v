// A serial transmitter: a start bit 0, eight bits from the lowest on, and a stop bit 1, four cycles each.
module uart(input clk, input [7:0] data, input send, output tx, output busy);
  reg [9:0] shift = 10'h3ff;
  reg [3:0] left = 0;  // bits still to be sent
  reg [1:0] tick = 0;

  assign busy = left != 0;
  assign tx = !busy | shift[0];

  always @(posedge clk)
    if (!busy) begin
      tick <= 0;
      if (send) begin
        shift <= {1'b1, data, 1'b0};
        left <= 10;
      end
    end else begin
      tick <= tick + 1;
      if (tick == 3) begin
        shift <= {1'b1, shift[9:1]};
        left <= left - 1;
      end
    end
endmodule
